"""Tables in a bucket of a store that answers as S3 does, of both formats: read back without Spark,
and nothing that is kept or shown has the secret."""

import json
import os
from collections import Counter

import pytest
from test_spark_tables import COPIES, event, stop

from spark_local.engine import jars, look
from spark_local.jobfile import load
from tests.bucket_server import serving

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
SECRET = "hunter2-not-to-be-seen"
STORE = """
[sink.table.s3]
endpoint = "{endpoint}"
access_key = "${{file:{keys}:access}}"
secret_key = "${{file:{keys}:secret}}"
"""


@pytest.fixture(scope="module")
def bucket():
    with pytest.MonkeyPatch.context() as patch, serving(patch) as url:
        yield url


def read_iceberg(lake, endpoint):
    table = pytest.importorskip("pyiceberg.table")
    obstore = pytest.importorskip("obstore.store")
    store = obstore.from_url(f"{lake}/db/copies/metadata")
    version = bytes(store.get("version-hint.text").bytes()).decode()
    how = {"s3.endpoint": endpoint, "s3.access-key-id": "key", "s3.secret-access-key": "s",
           "s3.region": "us-east-1"}  # fmt: skip
    where = f"{lake}/db/copies/metadata/v{version}.metadata.json"
    return table.StaticTable.from_metadata(where, how).scan().to_arrow().to_pylist()


def read_delta(lake, endpoint):
    deltalake = pytest.importorskip("deltalake")
    return deltalake.DeltaTable(f"{lake}/db/copies").to_pyarrow_table().to_pylist()


READERS = {"iceberg": (jars.has_tables, read_iceberg), "delta": (jars.has_delta, read_delta)}


@pytest.mark.parametrize("form", READERS)
def test_a_table_in_a_bucket_has_each_row_and_nobody_tells_its_secret(
    bench, spark, bucket, form, tmp_path_factory
):
    has_jars, read = READERS[form]
    if not has_jars() or not jars.has_store():
        pytest.skip("its jars cannot be fetched")
    endpoint, lake = os.environ["AWS_ENDPOINT_URL"], f"{bucket}/{form}"
    keys = bench.path / "keys"
    keys.write_text(f"access=key\nsecret={SECRET}\n")
    source = bench.topic("in")
    text = COPIES.format(source=source, lake=lake)
    text = text.replace(
        f'table = {{path = "{lake}", name = "db.copies", partition_by = ["days(at)"]}}',
        f'[sink.table]\npath = "{lake}"\nname = "db.copies"\nformat = "{form}"'
        + STORE.format(endpoint=endpoint, keys=keys),
    )
    bench.write(source, *map(event, range(50)))
    place = bench.add(f"bucket-{form}-{bench.mark}", text)
    bench.read_rows(place, 50)
    stop(bench, place)
    assert Counter(row["id"] for row in read(lake, endpoint)) == Counter(range(50))
    job = load(bench.path / "files" / f"{place.name}.toml")
    shown = json.dumps(look.explain(spark, job, bench.kafka), default=str)
    shown += str(spark.newSession().sql("SET").collect())
    kept = [one for one in bench.path.rglob("*") if one.is_file() and one != keys]
    kept += tmp_path_factory.getbasetemp().rglob("spark.log")
    assert kept
    for file in kept:
        assert SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in shown
