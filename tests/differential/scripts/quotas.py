"""DescribeClientQuotas and AlterClientQuotas; credentials of SCRAM."""

from tests.differential.registry import script

EXACT, DEFAULT, ANY = 0, 1, 2


def entity(*pairs):
    return [{"entity_type": kind, "entity_name": name} for kind, name in pairs]


def op(key, value=None):
    return {"key": key, "value": value or 0.0, "remove": value is None}


def alter(s, pairs, *ops):
    answer = s.call("AlterClientQuotas", entries=[{"entity": entity(*pairs), "ops": list(ops)}])
    assert answer["entries"][0]["error_code"] == "NONE", answer


def described(s, step, *components, strict=False, api="DescribeClientQuotas"):
    rows = [{"entity_type": kind, "match_type": how, "match": name}
            for kind, how, name in components]  # fmt: skip
    return s.ask(step, api, components=rows, strict=strict)


@script("DescribeClientQuotas")
def describe_client_quotas(s):
    user, client, ip = s.name("user"), s.name("client"), "127.0.0.9"
    described(s, "unknown user", ("user", EXACT, user))
    alter(s, [("user", user)], op("producer_byte_rate", 1024.0), op("request_percentage", 50.0))
    alter(s, [("client-id", client)], op("consumer_byte_rate", 2048.0))
    alter(s, [("user", user), ("client-id", client)], op("controller_mutation_rate", 3.0))
    alter(s, [("ip", ip)], op("connection_creation_rate", 10.0))
    s.until(lambda a: len(a["entries"] or ()) == 1, "DescribeClientQuotas", components=[
        {"entity_type": "ip", "match_type": EXACT, "match": ip}])  # fmt: skip
    described(s, "user", ("user", EXACT, user))
    described(s, "user, strictly", ("user", EXACT, user), strict=True)
    described(s, "client", ("client-id", EXACT, client))
    described(s, "client, strictly", ("client-id", EXACT, client), strict=True)
    described(s, "both", ("user", EXACT, user), ("client-id", EXACT, client))
    described(s, "any user of a client", ("user", ANY, None), ("client-id", EXACT, client))
    described(s, "default user", ("user", DEFAULT, None), ("client-id", EXACT, client))
    described(s, "ip", ("ip", EXACT, ip))
    described(s, "unknown type", ("planet", EXACT, "mars"))
    described(s, "type twice", ("user", EXACT, user), ("user", EXACT, user))
    described(s, "unknown match", ("user", 7, user))
    described(s, "exact without name", ("user", EXACT, None))
    described(s, "default with a name", ("user", DEFAULT, "x"))
    described(s, "any with a name", ("user", ANY, "x"))
    described(s, "empty type", ("", EXACT, "x"))
    described(s, "ip and user", ("user", EXACT, user), ("ip", EXACT, ip))
    alter(s, [("user", user)], op("producer_byte_rate"), op("request_percentage"))
    alter(s, [("client-id", client)], op("consumer_byte_rate"))
    alter(s, [("user", user), ("client-id", client)], op("controller_mutation_rate"))
    alter(s, [("ip", ip)], op("connection_creation_rate"))


@script("AlterClientQuotas")
def alter_client_quotas(s):
    user = [("user", s.name("user"))]

    def ask(step, pairs, *ops, **values):
        s.ask(step, entries=[{"entity": entity(*pairs), "ops": list(ops)}], **values)

    ask("validated", user, op("producer_byte_rate", 1000.0), validate_only=True)
    ask("set", user, op("producer_byte_rate", 1000.0))
    ask("set again", user, op("producer_byte_rate", 1000.0), op("consumer_byte_rate", 5.0))
    ask("unknown key", user, op("speed", 1.0))
    ask("negative", user, op("producer_byte_rate", -1.0))
    ask("half a byte", user, op("producer_byte_rate", 0.5))
    ask("fraction", user, op("producer_byte_rate", 1000.5))
    ask("percentage", user, op("request_percentage", 0.5))
    ask("key twice", user, op("producer_byte_rate", 1.0), op("producer_byte_rate", 2.0))
    ask("no entity", [], op("producer_byte_rate", 1.0))
    ask("unknown type", [("planet", "mars")], op("producer_byte_rate", 1.0))
    ask("type twice", [*user, ("user", "x")], op("producer_byte_rate", 1.0))
    s.call("AlterClientQuotas", entries=[  # Kafka took the second one
        {"entity": entity(("user", "x")), "ops": [op("producer_byte_rate")]}])  # fmt: skip
    ask("empty name", [("user", "")], op("producer_byte_rate", 1.0))
    ask("ip and user", [*user, ("ip", "127.0.0.1")], op("connection_creation_rate", 1.0))
    ask("user's key for an ip", [("ip", "127.0.0.1")], op("producer_byte_rate", 1.0))
    ask("ip's key for a user", user, op("connection_creation_rate", 1.0))
    ask("not an address", [("ip", "nowhere!")], op("connection_creation_rate", 1.0))
    ask("a name of a host", [("ip", "no.such.host.invalid")], op("connection_creation_rate", 1.0))
    ask("no operation", user)
    ask("remove what is not there", user, op("request_percentage"))
    ask("remove", user, op("producer_byte_rate"), op("consumer_byte_rate"))
    s.ask("entity twice", entries=[
        {"entity": entity(*user), "ops": [op("producer_byte_rate", 1.0)]},
        {"entity": entity(*user), "ops": [op("consumer_byte_rate", 1.0)]},
    ])  # fmt: skip
    ask("tidy", user, op("producer_byte_rate"), op("consumer_byte_rate"))
    s.ask("nothing", entries=[])


@script("DescribeUserScramCredentials")
def describe_user_scram_credentials(s):
    s.ask("all", users=None)
    s.ask("none", users=[])
    s.ask("unknown", users=[{"name": s.name("user")}])
    s.ask("twice", users=[{"name": s.name("user")}, {"name": s.name("user")}])
    s.ask("empty name", users=[{"name": ""}])


@script("AlterUserScramCredentials")
def alter_user_scram_credentials(s):
    one, other, third = s.name("one"), s.name("other"), s.name("third")

    def put(name, mechanism=1, iterations=4096):
        return {
            "name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt",
            "salted_password": b"p" * 32,
        }  # fmt: skip

    def gone(name, mechanism=1):
        return {"name": name, "mechanism": mechanism}

    there = {}  # user → {mechanism: iterations} once the change is applied

    def ask(step, deletions=(), upsertions=(), **then):
        there.update(then)
        s.ask(step, deletions=list(deletions), upsertions=list(upsertions))
        names = {"one": one, "other": other, "third": third}
        wanted = {names[name]: found for name, found in there.items()}
        s.ask_until(
            f"{step}: then",
            lambda told: all(
                {info["mechanism"]: info["iterations"] for info in row["credential_infos"]}
                == wanted.get(row["user"], {})
                for row in told["results"]
            ),
            "DescribeUserScramCredentials",
            users=[{"name": name} for name in names.values()],
        )

    ask("nothing")
    ask("one", upsertions=[put(one)], one={1: 4096})
    ask("again, more iterations", upsertions=[put(one, iterations=16384)], one={1: 16384})
    ask("by the other mechanism", upsertions=[put(one, 2)], one={1: 16384, 2: 4096})
    ask("one user, both mechanisms", upsertions=[put(other), put(other, 2)])
    ask("twice the same", upsertions=[put(third), put(third)])
    ask("deleted and put", [gone(one)], [put(one)])
    ask("deleted twice", [gone(one), gone(one, 2)])
    ask("too few", upsertions=[put(third, iterations=4095)])
    ask("too many", upsertions=[put(third, iterations=16385)])
    ask("negative", upsertions=[put(third, iterations=-1)])
    ask("unknown mechanisms", [gone(third, 0)], [put(other, 3), put(one, -1)])
    ask("empty name", [gone("")], [put(third)], third={1: 4096})
    ask("deleted", [gone(third)], third={})
    ask("empty name put", upsertions=[put("")])
    ask("what is not there", [gone(other, 2), gone(s.name("nobody"))])
    ask("wrong, then right", [gone(s.name("nobody"))], [put(other)], other={1: 4096})
    s.ask("described twice", "DescribeUserScramCredentials", users=[{"name": one}] * 2)
    ask("tidy", [gone(one)], one={2: 4096})
    ask("tidy more", [gone(one, 2), gone(other)], one={}, other={})
