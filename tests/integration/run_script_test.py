"""./run: what its words mean. Stubs record the calls of cmake; nothing is installed or built."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
import binaries
import clang_tidy
import sanitized


class RunScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(REPOSITORY / "run", self.folder / "run")
        (self.folder / "bench").mkdir()
        shutil.copy(REPOSITORY / "bench/bench.py", self.folder / "bench/bench.py")
        stubs = self.folder / "stubs"
        stubs.mkdir()
        for name, body in {
            "apt-get": "exit 0",
            "id": "echo 0",
            "nvcc": "exit 0",
            "cmake": f'echo "$*" >>"{self.folder}/calls"',
        }.items():
            (stubs / name).write_text(f"#!/bin/sh\n{body}\n")
            (stubs / name).chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{stubs}:{os.environ['PATH']}",
                                TROUPE_SKIP_DEPS="1")

    def run_script(self, *words):
        """Returns the exit code, the error text, and the targets of each call that builds."""
        done = subprocess.run(["bash", str(self.folder / "run"), *words], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)
        calls = self.folder / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        builds = [line.split(" -- ")[0].split() for line in lines if line.startswith("--build")]
        targets = [words[words.index("--target") + 1:] if "--target" in words else []
                   for words in builds]
        return done.returncode, done.stderr, targets

    def test_a_build_makes_the_named_targets_alone(self):
        code, error, targets = self.run_script("build", "debug", "base_test", "plan_test")
        self.assertEqual((code, targets), (0, [["base_test", "plan_test"]]), error)

    def test_a_build_without_targets_makes_the_programs(self):
        code, error, targets = self.run_script("build", "debug")
        self.assertEqual((code, targets), (0, [["troupe", "troupe-coordinator", "troupe-worker"]]),
                         error)

    def test_words_that_a_command_would_ignore_are_refused_by_name(self):
        for words in (["deps", "now"], ["test", "asan", "now"], ["package", "now"],
                      ["quickstart", "now"], ["help", "now"]):
            code, error, targets = self.run_script(*words)
            self.assertEqual((code, targets), (2, []), words)
            self.assertIn(f"'{words[0]}' takes no argument 'now'", error)

    def test_the_help_of_benchmarks_and_wrong_names_build_nothing(self):
        code, error, targets = self.run_script("bench", "--help")
        self.assertEqual((code, targets), (0, []), error)
        code, error, targets = self.run_script("bench", "step", "walk")
        self.assertEqual((code, targets), (1, []), error)
        self.assertIn("no benchmark 'walk'", error)

    def test_warnings_are_errors_where_the_environment_asks_for_it(self):
        for value, expected in ((None, "OFF"), ("ON", "ON")):
            self.environment.pop("TROUPE_WERROR", None)
            if value is not None:
                self.environment["TROUPE_WERROR"] = value
            self.run_script("build", "debug")
            calls = (self.folder / "calls").read_text().splitlines()
            configured = [line for line in calls if line.startswith("--preset")][-1]
            self.assertIn(f"-DCMAKE_COMPILE_WARNING_AS_ERROR={expected}", configured)

    def test_an_unknown_preset_or_command_is_refused_by_name(self):
        for words in (["build", "fast"], ["fast"]):
            code, error, targets = self.run_script(*words)
            self.assertEqual((code, targets), (2, []), words)
            self.assertIn("'fast'", error)

    def test_clang_gets_the_options_of_gcc_that_it_knows(self):
        entry = {"command": "/usr/bin/c++ -DA=1 -I/r -fopenmp -fpch-preprocess -x c++ -std=c++20 "
                            "-Winvalid-pch -include /b/cmake_pch.hxx -o a.o -c /r/a.cc"}
        arguments = clang_tidy.clang_arguments(entry)
        self.assertEqual(arguments[:5], ["-DA=1", "-I/r", "-x", "c++", "-std=c++20"])
        self.assertNotIn("/b/cmake_pch.hxx", arguments)
        self.assertNotIn("a.o", arguments)

    def test_a_changed_header_is_checked_through_the_source_of_its_name(self):
        entries = {"base/status.cc": {}, "base/clock.cc": {}}
        wanted, unknown = clang_tidy.to_check(
            ["base/status.h", "base/status.cc", "README.md", "base/gone.cc"], entries)
        self.assertEqual(wanted, {"base/status.cc": ["base/status.h", "base/status.cc"]})
        self.assertEqual(unknown, ["base/gone.cc"])

    TARGETS = {
        "base": ({"base"}, set()),
        "actor": ({"actor", "actor/sim"}, {"base"}),
        "data": ({"data"}, {"base"}),
        "actor_test": ({"actor"}, {"actor"}),
        "data_test": ({"data"}, {"data"}),
        "base_test": ({"base"}, {"base"}),
        "tidy_test": ({"tests"}, set()),
    }
    NAMES = ["actor_test", "base_test", "data_test", "tidy_test"]

    def choose(self, *paths, count=0):
        return sanitized.choose(self.NAMES, self.TARGETS, paths, count)

    def test_sanitizers_run_what_a_change_reaches(self):
        self.assertEqual(self.choose("actor/sim/system.cc")[0], ["actor_test"])
        self.assertEqual(self.choose("base/log.h")[0], ["actor_test", "base_test", "data_test"])
        self.assertEqual(self.choose("data/golden/new/a.def")[0], ["data_test"])
        self.assertEqual(self.choose("data/CMakeLists.txt")[0], ["data_test"])
        self.assertEqual(self.choose("CMakeLists.txt")[0], self.NAMES)
        self.assertEqual(self.choose("data/testdata/tokenizer.json")[0], ["data_test"])
        self.assertEqual(self.choose("tests/tsan.supp")[0], self.NAMES)
        self.assertEqual(self.choose("README.md", "docs/data.md", "run", "python/a.py")[0], [])

    def test_three_commits_in_a_row_run_every_binary_under_the_sanitizers(self):
        # Whatever each of them changes: a binary's turn does not depend on what the change reaches.
        for changed in (("data/a.cc", "data/a.cc", "data/a.cc"), ("", "actor/a.cc", "base/a.cc"),
                        ("base/a.cc", "", "actor/a.cc"), ("", "", "")):
            run = set()
            for count, path in enumerate(changed, 7):
                run |= set().union(*self.choose(*[path] if path else [], count=count))
            self.assertEqual(run, set(self.NAMES), changed)

    def test_batches_begin_with_what_the_change_reaches(self):
        reached, third = [f"r{i}_test" for i in range(8)], ["t0_test", "t1_test"]
        for count in range(5):
            batches = sanitized.batches(reached, third, count)
            order = sum(batches, [])
            self.assertEqual(set(order[:8]), set(reached))
            self.assertEqual(set(order[8:]), set(third))
            self.assertTrue(all(len(batch) <= sanitized.BATCH for batch in batches))
        self.assertEqual(sanitized.batches([], [], 3), [])

    def test_the_names_of_failed_cases_are_shown_whatever_their_output(self):
        long = "[  FAILED  ] A.First (3 ms)\n" + "a log line\n" * 3000 + "the end"
        shown = binaries.shown(long)
        self.assertTrue(shown.startswith("[  FAILED  ] A.First (3 ms)\n"))
        self.assertTrue(shown.endswith("the end"))
        self.assertEqual(binaries.shown("[  FAILED  ] A.B\n"), "[  FAILED  ] A.B\n")

    def test_where_time_ends_early_commits_in_a_row_still_run_every_binary(self):
        names = [f"{i}_test" for i in range(50)]
        first = [sanitized.batches(names, [], count)[0] for count in range(9)]
        self.assertEqual(set(sum(first, [])), set(names))


if __name__ == "__main__":
    unittest.main()
