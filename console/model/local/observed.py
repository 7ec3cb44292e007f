"""The memory of the appliance that runs in a data folder, for whoever shows what is in it."""

from appliance.observer.door import NotThere, Observer
from console.model.asking.failure import UNREACHABLE, Failure


def observed(data_dir: str) -> Observer:
    """Raises Failure: nobody runs there, or may be read."""
    try:
        return Observer(data_dir)
    except NotThere as why:
        raise Failure(
            str(why), "--data names the folder of a running appliance",
            where=data_dir, code=UNREACHABLE, name="NOT_RUNNING",
        ) from None  # fmt: skip
