"""docs/from-docker.md: its Java class stands where a container of Testcontainers stood; the test
beside it passes by Maven as the page has it, without Docker."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.local import environment

PAGE = (Path(__file__).parents[2] / "docs" / "from-docker.md").read_text()
SECTION = PAGE.partition("## Testcontainers, in Java")[2].partition("\n## ")[0]
PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>orders</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  {dependencies}
  <build>
    <plugins>
      <plugin> <!-- that of Maven 3 runs nothing of JUnit 5 -->
        <artifactId>maven-surefire-plugin</artifactId>
        <version>3.2.5</version>
      </plugin>
    </plugins>
  </build>
</project>
"""
NO_DOCKER = "unix:///nowhere/docker.sock"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path):
    """A Maven project of what the page has, each class in the file that its name asks for."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        pytest.skip("needs Maven and a JDK")
    (dependencies,) = blocks("xml")
    sources = tmp_path / "project" / "src" / "test" / "java"
    sources.mkdir(parents=True)
    (tmp_path / "project" / "pom.xml").write_text(PROJECT.format(dependencies=dependencies))
    for program in blocks("java"):
        (name,) = re.findall(r"^(?:public )?class (\w+)", program, re.MULTILINE)
        (sources / f"{name}.java").write_text(program)
    return tmp_path / "project"


@pytest.fixture
def surroundings(tmp_path):
    """`penstock` on the PATH, no Docker, and a folder for temporary files that is empty."""
    program = tmp_path / "bin" / "penstock"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m console "$@"\n')
    program.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    here = {"PATH": path, "TMPDIR": str(tmp_path / "temporary"), "DOCKER_HOST": NO_DOCKER}
    return environment() | here


@pytest.mark.timeout(400)  # two JVMs and a compiler
def test_a_java_test_of_testcontainers_has_an_appliance_without_docker(project, surroundings):
    maven = ("mvn", "-B", "-o", "-Dstyle.color=never", "test")  # -o: fetches nothing
    done = subprocess.run(
        maven, cwd=project, env=surroundings, capture_output=True, text=True, timeout=350,
        check=False,
    )  # fmt: skip
    if "in offline mode" in done.stdout:
        pytest.skip("Maven's repository lacks what the page names: run `mvn test` with it once")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in done.stdout
    left = [name for name in os.listdir(surroundings["TMPDIR"]) if name.startswith("penstock")]
    assert left == []
