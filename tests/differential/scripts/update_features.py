"""UpdateFeatures. Nothing here may change a level: all is validated only or refused."""

from tests.differential.registry import script


@script("UpdateFeatures")
def update_features(s):
    def ask(step, feature, level, upgrade=1, **values):
        update = {"feature": feature, "max_version_level": level, "upgrade_type": upgrade,
                  "allow_downgrade": upgrade > 1}  # fmt: skip
        s.ask(step, timeout=10_000, feature_updates=[update], **values)

    ask("unknown feature", "no.such.feature", 1)
    ask("too high", "group.version", 9)
    ask("too high a metadata version", "metadata.version", 9999)
    ask("unknown level", "metadata.version", 1)
    ask("as it is", "group.version", 1)
    ask("downgrade without leave", "group.version", 0)
    ask("downgrade of the metadata version", "metadata.version", 25)
    ask("negative level", "group.version", -1, 2)
    if s.version >= 1:
        ask("validated downgrade", "group.version", 0, 2, validate_only=True)
        ask("validated unsafe downgrade", "metadata.version", 25, 3, validate_only=True)
        ask("validated downgrade of the metadata version", "metadata.version", 25, 2,
            validate_only=True)  # fmt: skip
        ask("unknown upgrade type", "group.version", 1, 9)
        ask("validated transaction.version 1", "transaction.version", 1, 2, validate_only=True)
    ask("transaction.version as it is", "transaction.version", 2)
    ask("a transaction.version too high", "transaction.version", 3)
    ask("transaction.version downgraded without leave", "transaction.version", 0)
    twice = {"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}
    s.ask("twice", timeout=10_000, feature_updates=[twice, twice])
    s.ask("nothing", timeout=10_000)
