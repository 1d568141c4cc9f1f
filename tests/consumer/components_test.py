"""What is installed belongs to the program or to a worker: the wheel takes these apart, and a rule without a component comes a second time."""

import subprocess

from given import BUILD, CMAKE

NO_COMPONENT = "Unspecified"  # CMake's name of it


def test_nothing_is_installed_without_a_component(tmp_path):
    command = [CMAKE, "--install", BUILD, "--component", NO_COMPONENT, "--prefix", tmp_path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == []
