"""`penstock job stop`."""

from appliance.cli.job.wishing import wishing
from spark_local.folder import STOPPED, JobFolder, Wish


@wishing("stop", to_end=True)
def command(place: JobFolder) -> Wish:
    """Stop jobs. The batch that is being written is finished first, so nothing is written twice
    when they are started again.

    \b
    penstock job stop delays
    """
    wish = place.wish()
    return wish if wish.state == STOPPED else place.wish_for(STOPPED)
