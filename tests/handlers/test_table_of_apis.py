"""The table of APIs and the files that it stands for."""

import re
from pathlib import Path

from kio.schema.index import api_key_map

from appliance.authorization import apis
from appliance.coordinators.kinds import KINDS
from appliance.handlers import registry
from appliance.handlers.admin_apis import APIS as DECIDED

FOLDER = Path(registry.__file__).parent


def test_each_row_is_named_as_in_kafkas_protocol():
    keys = [row.key for row in apis.APIS.values()]
    assert keys == sorted(set(keys))
    for row in apis.APIS.values():
        assert row.name.lower() == api_key_map[row.key].replace("_", ""), row


def test_each_file_of_an_api_belongs_to_a_row():
    files = {path.stem for path in FOLDER.glob("k[0-9]*.py")}
    rows = {row.module: row for row in apis.APIS.values()}
    assert files <= rows.keys()
    must = {m for m, row in rows.items() if row.decided in (apis.NETPROC, apis.CONTROL)}
    assert must <= files


def test_rows_say_where_an_api_is_decided():
    coordinated = {key for kind in KINDS for key in kind.APIS}
    assert coordinated == {
        row.key for row in apis.APIS.values() if row.decided in (apis.GROUPS, apis.TRANSACTIONS)
    }
    decided = {row.key for row in apis.APIS.values() if row.decided == apis.CONTROL}
    assert DECIDED.keys() == decided | {22}


def test_what_describes_or_lists_only_reads():
    named = {row.key for row in apis.APIS.values() if re.match("Describe|List", row.name)}
    assert named <= apis.READS
    assert not any(re.match("Alter|Create|Delete", apis.APIS[key].name) for key in apis.READS)
