"""Is there a Java that Spark can use? PySpark's own answer would be a stack trace."""

import os
import re
import shutil
import subprocess
from typing import Final

from spark_local.cause import JobError

LEAST: Final = 17
REMEDY: Final = "apt install openjdk-17-jre-headless installs one"


def unavailable() -> str | None:
    """Why Spark cannot run here, one clause; None when it can."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME ({home}) has no Java" if home else "Java is not installed"
        return f"{where}, and Spark needs Java {LEAST} or newer"
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return f"{java} does not start"
    told = re.search(r'version "(\d+)', done.stderr + done.stdout)
    if told is None or int(told[1]) < LEAST:
        return f"{java} is Java {told[1] if told else 'of no known version'}, not {LEAST} or newer"
    return None


def need_java() -> None:
    """Raises JobError when there is none."""
    if reason := unavailable():
        raise JobError(reason, REMEDY)
