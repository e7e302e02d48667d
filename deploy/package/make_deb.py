"""Makes the package of Debian, troupe_VERSION_ARCHITECTURE.deb. Called by ./run package.

    /usr/bin/python3 deploy/package/make_deb.py BIN OUTPUT

BIN has the programs, which print their completion scripts and manual pages. dpkg-shlibdeps finds
the packages of their libraries. OUTPUT, a folder, has the package of this call alone afterwards.
"""

import gzip
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = ("troupe", "troupe-coordinator", "troupe-worker")
SERVICES = ("coordinator", "worker")
TOOLS = ("dpkg-deb", "dpkg-shlibdeps", "strip")
LIMIT_SECONDS = 300
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/troupe",
    "zsh": "usr/share/zsh/vendor-completions/_troupe",
    "fish": "usr/share/fish/vendor_completions.d/troupe.fish",
}
# Headers alone, so that no package on which ours depends has their notices.
COMPILED_IN = ("libcli11-dev", "nlohmann-json3-dev")
DOCUMENTS = "usr/share/doc/troupe"

CONTROL = """Package: troupe
Version: {version}
Architecture: {architecture}
Maintainer: Troupe maintainers <maintainers@troupe.invalid>
Installed-Size: {kibibytes}
Depends: {libraries}, systemd-standalone-sysusers | systemd-sysusers
Suggests: bash-completion, man-db
Section: science
Priority: optional
Description: distributed training service for language models
 Troupe trains language models of the Llama family, dense or with experts. You
 submit a job; the coordinator plans its layout and schedule, and workers run
 it, write checkpoints and recover from the death of any process.
 .
 This package has the command, the coordinator and the worker for processors,
 and units of systemd for both services, which are not enabled.
"""


def run(*words, cwd=None):
    """Returns the standard output of a command; ends this program if the command fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd,
                          timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        command = " ".join(str(word) for word in words)
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def add(tree, path, content, mode=0o644):
    """Writes a file of the package: text or bytes."""
    target = tree / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)
    target.chmod(mode)


def version_of(programs):
    """Returns the version that all programs print; ends this program if they differ."""
    printed = {name: run(programs / name, "--version").split() for name in PROGRAMS}
    versions = {words[1] for name, words in printed.items() if words[:1] == [name]}
    if len(versions) != 1:
        raise SystemExit(f"the programs are not of one version: {printed}")
    return versions.pop()


def unit(service):
    """Returns the unit of deploy/systemd with the paths of the package."""
    text = (ROOT / f"deploy/systemd/troupe-{service}.service").read_text()
    _, begin, body = text.partition("[Unit]\n")
    for former, packaged in (
            (f"EnvironmentFile=/etc/troupe/{service}.env\n",
             f"EnvironmentFile=-/etc/default/troupe-{service}\n"),
            ("/opt/troupe/bin/", "/usr/bin/")):
        if former not in body:
            raise SystemExit(f"the unit of the {service} has no {former!r}")
        body = body.replace(former, packaged)
    return f"# Its flags are in /etc/default/troupe-{service}.\n{begin}{body}"


def add_programs(tree, programs):
    for name in PROGRAMS:
        target = tree / "usr/bin" / name
        add(tree, f"usr/bin/{name}", (programs / name).read_bytes(), 0o755)
        run("strip", "--remove-section=.comment", "--remove-section=.note", target)


def add_printed_texts(tree, programs):
    """Adds what the programs print about themselves."""
    for shell, path in COMPLETIONS.items():
        add(tree, path, run(programs / "troupe", "completion", shell))
    for name in PROGRAMS:
        page = run(programs / name, "man" if name == "troupe" else "--manual")
        add(tree, f"usr/share/man/man1/{name}.1.gz", gzip.compress(page.encode(), 9, mtime=0))


def add_services(tree):
    """Adds units, settings and user of the services."""
    for service in SERVICES:
        add(tree, f"usr/lib/systemd/system/troupe-{service}.service", unit(service))
        add(tree, f"etc/default/troupe-{service}",
            (HERE / f"troupe-{service}.default").read_text())
    users = (ROOT / "deploy/systemd/troupe.sysusers.conf").read_text().splitlines(keepends=True)
    add(tree, "usr/lib/sysusers.d/troupe.conf",
        "".join(line for line in users if not line.startswith("#")))


def add_documents(tree):
    add(tree, f"{DOCUMENTS}/copyright", (HERE / "copyright").read_text())
    for package in COMPILED_IN:
        notice = pathlib.Path("/usr/share/doc") / package / "copyright"
        if not notice.exists():
            raise SystemExit(f"{notice}, whose text the package must have, does not exist")
        add(tree, f"{DOCUMENTS}/third-party/{package}.copyright", notice.read_bytes())
    examples = ROOT / "examples"
    for path in [*examples.glob("*.yaml"), *examples.glob("profiles/*.yaml")]:
        add(tree, f"{DOCUMENTS}/examples/{path.relative_to(examples)}", path.read_bytes())


def library_packages(tree, folder):
    """Returns the value of Depends for the libraries of the programs."""
    add(folder, "debian/control", "Source: troupe\n\nPackage: troupe\nArchitecture: any\n")
    found = run("dpkg-shlibdeps", "-O", *(f"-e{tree / 'usr/bin' / name}" for name in PROGRAMS),
                cwd=folder)
    match = re.search(r"^shlibs:Depends=(.+)$", found, re.MULTILINE)
    if match is None:
        raise SystemExit(f"dpkg-shlibdeps found no packages of the programs' libraries: {found!r}")
    return match[1]


def add_control(tree, version, architecture, libraries):
    """Adds the members of the package that dpkg reads."""
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    names = {str(path.relative_to(tree)): path for path in files}
    kibibytes = sum(-(-path.stat().st_size // 1024) for path in files)
    add(tree, "DEBIAN/control", CONTROL.format(version=version, architecture=architecture,
                                               kibibytes=kibibytes, libraries=libraries))
    add(tree, "DEBIAN/conffiles",
        "".join(f"/{name}\n" for name in names if name.startswith("etc/")))
    add(tree, "DEBIAN/md5sums", "".join(
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {name}\n"
        for name, path in names.items() if not name.startswith("etc/")))
    for script in ("postinst", "prerm", "postrm"):
        add(tree, f"DEBIAN/{script}", (HERE / script).read_text(), 0o755)


def make(programs, output):
    """Makes the package of the programs in `output`, and returns its path."""
    version = version_of(programs)
    architecture = run("dpkg", "--print-architecture").strip()
    with tempfile.TemporaryDirectory(prefix="troupe-deb-") as name:
        folder = pathlib.Path(name)
        tree = folder / "tree"
        add_programs(tree, programs)
        add_printed_texts(tree, programs)
        add_services(tree)
        add_documents(tree)
        add_control(tree, version, architecture, library_packages(tree, folder))
        for path in [tree, *tree.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        output.mkdir(parents=True, exist_ok=True)
        for former in output.glob("troupe_*.deb"):
            former.unlink()
        package = output / f"troupe_{version}_{architecture}.deb"
        run("dpkg-deb", "--root-owner-group", "--build", tree, package)
    return package


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: make_deb.py BIN OUTPUT")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"{', '.join(missing)} missing: Debian's dpkg-dev and binutils have them")
    print(make(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])))


if __name__ == "__main__":
    main()
