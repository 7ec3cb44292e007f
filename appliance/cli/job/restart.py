"""`penstock job restart`."""

from appliance.cli.job.wishing import wishing
from spark_local.folder import RUNNING, JobFolder, Wish


@wishing("restart")
def command(place: JobFolder) -> Wish:
    """Stop jobs, each after its batch, and start them again from there.

    \b
    penstock job restart delays
    """
    return place.wish_for(RUNNING)
