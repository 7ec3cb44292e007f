"""`penstock job start`."""

from appliance.cli.job.wishing import wishing
from spark_local.folder import RUNNING, JobFolder, Wish


@wishing("start")
def command(place: JobFolder) -> Wish:
    """Start jobs. One that runs already is left alone; one that failed or has ended begins again
    from its last batch.

    \b
    penstock job start delays
    penstock job start --all
    """
    wish = place.wish()
    ended = place.state().get("state") in ("failed", "finished")
    return wish if wish.state == RUNNING and not ended else place.wish_for(RUNNING)
