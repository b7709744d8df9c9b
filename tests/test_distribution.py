"""The distribution: wheel and sdist are built and inspected; the wheel is used without the repository."""

import email
import importlib.util
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST_SDIST = 3_000_000  # bytes


def hook():
    spec = importlib.util.spec_from_file_location("readme_hook", ROOT / "readme_hook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_the_index_would_take_both(built):
    files = sorted(map(str, built.iterdir()))
    assert len(files) == 2
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kept = {".py", ".pyi", ".typed", ".css", ".js", ".html"}
    files = [path.relative_to(ROOT / "src") for path in (ROOT / "src" / "urbe").rglob("*") if path.is_file()]
    expected = {str(path) for path in files if path.suffix in kept or path.name == "py.typed"}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"urbe/py.typed", "urbe/report/page.css", "urbe/__init__.pyi"} <= expected
    assert {name.rpartition("/")[2] for name in names if ".dist-info/" in name} == {
        "METADATA", "WHEEL", "RECORD", "LICENSE", "entry_points.txt"
    }  # fmt: skip


def test_the_sdist_is_small_and_has_no_results(built):
    (path,) = built.glob("*.tar.gz")
    assert path.stat().st_size < LARGEST_SDIST
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "readme_hook.py", "README.md", "src/urbe/py.typed", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith("docs/results") or name.endswith((".nbi", ".nbc", ".pyc"))]


def test_metadata_says_who_what_and_for_which_python(metadata):
    assert metadata["Author"] == "The urbe developers"
    assert metadata["License-Expression"] == "MIT"
    classifiers = metadata.get_all("Classifier")
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert "Typing :: Typed" in classifiers
    assert {"deep", "gym", "plots", "logs", "storm"} <= set(metadata.get_all("Provides-Extra"))
    core = {re.split(r"[<>=;\[ ]", each)[0] for each in metadata.get_all("Requires-Dist") if "extra ==" not in each}
    assert core == {"numpy", "scipy", "numba", "rich"}


def test_the_long_description_leads_nowhere_that_is_not_there(metadata):
    text = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert text.startswith("# urbe")
    assert not re.findall(r"\]\((?![a-z]+:|#)", text)
    assert "not on a package index" not in text
    assert 'pip install "urbe[plots]"' in text
    assert '".[' not in text
    assert "*Picture in the repository: The worst case of both policies" in text


def test_a_publisher_may_say_where_links_lead():
    text = f"{hook().NOT_YET}\n![a plot](docs/a.svg) and [page](docs/a.md#part), [out](mailto:x), [up](#top)"
    assert (
        hook()
        .long_description(text, "https:example/")
        .endswith(
            "![a plot](https:example/docs/a.svg) and [page](https:example/docs/a.md#part), [out](mailto:x), [up](#top)"
        )
    )
    assert (
        hook()
        .long_description(text)
        .endswith("*Picture in the repository: a plot.* and page, [out](mailto:x), [up](#top)")
    )
    with pytest.raises(ValueError, match=r"README\.md has no line"):
        hook().long_description("# urbe")


@pytest.mark.slow
def test_the_wheel_works_alone_and_runs_the_readme(wheel, tmp_path):
    """In an environment that has nothing else, from a folder that is no clone."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    pinned = ["--constraint", str(ROOT / "constraints.txt")]

    def pip(*what):
        done = subprocess.run([python, "-m", "pip", "install", "-q", *pinned, *what], capture_output=True, text=True)
        if done.returncode and ("Temporary failure" in done.stderr or "No matching distribution" in done.stderr):
            pytest.skip(f"No index at hand: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr

    def run(*words):
        done = subprocess.run([python, "-I", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    pip(str(wheel))
    assert run("-c", "import urbe; print(urbe.__file__)").startswith(str(home))
    command = str(home / "bin" / "urbe")
    helped = subprocess.run([command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert helped.stdout.startswith("usage: urbe")
    pip(f"{wheel}[plots,deep]")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "machines.csv").write_bytes((ROOT / "examples" / "machines.csv").read_bytes())
    blocks = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    assert run("-c", "\n".join(code for code, _ in blocks)) == "".join(printed for _, printed in blocks)
    assert (tmp_path / "price.png").read_bytes().startswith(b"\x89PNG")
