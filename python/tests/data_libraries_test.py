"""`python -m troupe.data prepare` with the packages of PyPI: tokenizers, tables, zstd, processes.
"""

import json
import os
import unittest
import unittest.mock

from data_case import ROOT, DataCase, needs, needs_program
from troupe.data import _encode, _prepare, _sources, _tables, _tokenizers

BYTE_LEVEL = [ROOT / f"data/testdata/{name}_tokenizer.json" for name in ("gpt2", "llama3")]
TEXT = "Größe 日本語 👍 <sep>  the cat\n"


def end_this_process(_):
    os._exit(9)


def unigram():
    """Returns a tokenizer as SentencePiece makes them: unigram, metaspace, byte fallback."""
    import tokenizers
    pieces = [("<unk>", 0.0), ("</s>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256)),
              ("▁", -2.0), ("▁the", -3.0), ("▁cat", -3.5), ("t", -4.0), ("he", -4.5), ("c", -5.0),
              ("a", -5.0), ("Gr", -6.0)]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, 0, True))
    made.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<sep> $A", special_tokens=[("<sep>", len(pieces))])
    made.add_tokens([tokenizers.AddedToken("<sep>", lstrip=True, rstrip=True)])
    return made


@needs("tokenizers")
class TokenizerFileTest(DataCase):
    def setUp(self):
        super().setUp()
        self.tokenizer = self.home / "tokenizer.json"

    @needs_program
    def test_byte_level_bpe_gives_the_files_of_the_command(self):
        self.write("a", f"{TEXT}<|pad|> it's 1234 <|endoftext|>\r\n")
        self.write("ill", b"bad \xff\xe2\x82 end")
        self.write("b.jsonl", "".join(json.dumps({"text": text}) + "\n"
                                      for text in (TEXT, "", "\ud83d x", "foo_bar!")))
        self.write("empty", b"")
        for path in BYTE_LEVEL:
            for flags in ((), ("--eod-id", 5)):
                with self.subTest(path.name, flags=flags):
                    done = self.assert_equal_to_the_command("--tokenizer", path, *flags)
                    self.assertEqual(done.result["replaced"], 3)

    def test_any_tokenizer_gives_the_ids_of_its_package(self):
        made = unigram()
        made.save(str(self.tokenizer))
        texts = [TEXT, "<sep>", "the cat sat", "ﬁ\u0301", " "]
        self.write("a.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
        done = self.prepare("--tokenizer", self.tokenizer, "--eod-id", 1)
        self.assertEqual(done.code, 0, done.err)
        expected = []
        for text in texts:
            expected += [*made.encode(text, add_special_tokens=False).ids, 1]
        self.assertEqual(done.tokens, expected)
        self.assertIn(made.token_to_id("<0xF0>"), expected)
        self.assertEqual(done.result["vocab_size"], made.get_vocab_size())

    def test_a_large_vocabulary_has_larger_tokens(self):
        import tokenizers
        vocabulary = {f"w{i}": i for i in range(65_499)}
        for more, width in ({}, 2), ({"last": 65_500}, 4):
            tokenizers.Tokenizer(tokenizers.models.WordLevel({**vocabulary, **more}, "w0")).save(
                str(self.tokenizer))
            self.write("a", "w65498")
            done = self.prepare("--tokenizer", self.tokenizer, "--eod-id", 7)
            self.assertEqual(done.tokens, [65_498, 7])
            self.assertEqual(len(done.files[".bin"]), 2 * width)
            self.assertEqual(done.result["vocab_size"], max([*vocabulary.values(),
                                                             *more.values()]) + 1)

    def test_the_end_of_a_document_is_found_as_by_the_command(self):
        made = unigram()
        made.save(str(self.tokenizer))
        self.write("a", "the")
        self.assertIn("the token that ends a document is unknown", self.refused(
            "--tokenizer", self.tokenizer))
        config = self.home / "tokenizer_config.json"
        for token in ("</s>", {"content": "</s>", "lstrip": False}):
            config.write_text(json.dumps({"eos_token": token}))
            done = self.prepare("--tokenizer", self.tokenizer, prefix="other/data")
            self.assertEqual(done.result["end_of_document"], 1)
        for token, words in (("</t>", 'has no token "</t>", the eos_token'),
                             (3, "eos_token is 3, not the text of a token"),
                             (None, "is unknown")):
            config.write_text(json.dumps({"eos_token": token}))
            self.assertIn(words, self.refused("--tokenizer", self.tokenizer))
        self.assertIn("end of document 999 is not in [0, ", self.refused(
            "--tokenizer", self.tokenizer, "--eod-id", 999))

    def test_all_tokens_of_a_text_are_written_and_always_the_same(self):
        import tokenizers
        made = unigram()
        made.enable_truncation(2)
        made.enable_padding(length=50)
        made.save(str(self.tokenizer))
        self.write("a", "the cat the cat")
        done = self.prepare("--tokenizer", self.tokenizer, "--eod-id", 1, prefix="other/data")
        self.assertEqual(done.tokens, [made.token_to_id(token) for token in
                                       ("▁the", "▁cat", "▁the", "▁cat", "</s>")])
        tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, [], dropout=0.5)).save(
            str(self.tokenizer))
        self.assertIn("model.dropout is 0.5", self.refused("--tokenizer", self.tokenizer,
                                                           "--eod-id", 0))

    def test_a_text_that_cannot_be_encoded_is_named(self):
        import tokenizers
        tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "unk")).save(
            str(self.tokenizer))
        self.write("a.jsonl", '{"text": "a"}\n{"text": "b"}\n')
        self.assertIn("in/a.jsonl:2: the tokenizer cannot encode the text: ", self.refused(
            "--tokenizer", self.tokenizer, "--eod-id", 0))
        for content, words in (("[]", "is not a JSON object"), ("{}", "cannot read it"),
                               ("version https://git-lfs.github.com/spec/v1", "git lfs pull")):
            self.tokenizer.write_text(content)
            self.assertIn(words, self.refused("--tokenizer", self.tokenizer))

    def test_a_text_has_a_limit(self):
        self.write("a", "x" * 20)
        with unittest.mock.patch.object(_sources, "MOST_WHOLE_BYTES", 19):
            done = self.prepare("--tokenizer", BYTE_LEVEL[0])
        self.assertEqual((done.code, done.err.replace(f"{self.home}/", "")), (
            1, "troupe.data: in/a has 20 bytes; with this tokenizer a document has at most 19 "
            "bytes: split it\n"))

    def test_the_files_do_not_depend_on_the_number_of_processes(self):
        for i in range(40):
            self.write(f"{i}.txt", f"{i} {TEXT * i}")
        self.write("lines.jsonl", "".join(json.dumps({"text": TEXT * (i % 9)}) + "\n"
                                          for i in range(300)))
        flags = ("--tokenizer", BYTE_LEVEL[0], "--processes")
        with unittest.mock.patch.object(_prepare, "_SMALL_BYTES", 0), \
                unittest.mock.patch.object(_encode, "_CHUNK_BYTES", 2000):
            one, two = self.prepare(*flags, 1), self.prepare(*flags, 2)
            self.assertEqual((one.files, one.err), (two.files, two.err))
            self.assertEqual(one.result["documents"], 40 + 300 - 34)
            # The first of two errors is reported, whichever process meets one first.
            self.write("a.jsonl", '{"text": "x"}\n' * 5000 + '{"text": 1}\n' * 5000)
            self.assertIn("a.jsonl:5001: ", self.prepare(*flags, 2).err)

    def test_a_process_that_is_killed_is_named(self):
        self.write("a", "x" * 5000)
        with unittest.mock.patch.object(_prepare, "_SMALL_BYTES", 0), \
                unittest.mock.patch.object(_encode, "_run", end_this_process):
            done = self.prepare("--tokenizer", BYTE_LEVEL[0], "--processes", 2)
        self.assertEqual(done.code, 1)
        self.assertIn("a process that encodes has ended", done.err)
        self.assertEqual(list((self.home / "out").iterdir()), [])


@needs("pyarrow")
class TableTest(DataCase):
    def table(self, name, column="text", kind=None, **columns):
        import pyarrow
        import pyarrow.parquet
        columns = {key: pyarrow.array(values, kind if key == column else None)
                   for key, values in columns.items()}
        pyarrow.parquet.write_table(pyarrow.table(columns), self.folder / name, row_group_size=2)

    def dataset(self, name, *shards, **state):
        """Writes what Dataset.save_to_disk writes."""
        import pyarrow
        folder = self.folder / name
        folder.mkdir(parents=True)
        files = [f"data-{i:05}-of-{len(shards):05}.arrow" for i in range(len(shards))]
        for file, texts in zip(files, shards):
            table = pyarrow.table({"label": list(range(len(texts))), "text": texts})
            with pyarrow.ipc.new_stream(str(folder / file), table.schema) as stream:
                stream.write_table(table, max_chunksize=2)
        (folder / "dataset_info.json").write_text("{}")
        (folder / "state.json").write_text(json.dumps(
            {"_data_files": [{"filename": file} for file in files], **state}))
        return folder

    def test_each_row_of_parquet_is_a_document(self):
        import pyarrow
        self.table("b.parquet", id=[1, 2, 3], text=["one", "", "drei"])
        self.table("a.parquet", kind=pyarrow.large_string(), text=["größe"])
        self.write("c", "text")
        done = self.prepare()
        self.assertEqual(done.text, "größe|one|drei|text|")
        self.assertEqual(done.err, "skipped: 0 binary, 0 unreadable, 1 empty, 0 symbolic links, 0 "
                         "special\n")
        self.table("a.parquet", "body", body=["x"])
        self.assertEqual(self.prepare("--column", "body", paths=[self.folder / "a.parquet"]).text,
                         "x|")

    def test_rows_without_a_text_are_named(self):
        for columns, words in (
                ({"text": ["a", "b", None]}, '[2]: the row has null in the column "text", not a'),
                ({"text": [1]}, ': the column "text" has int64, not strings'),
                ({"body": ["a"]}, ': has no column "text"; its columns are ["body"]; --column')):
            self.table("a.parquet", **columns)
            self.assertIn(f"in/a.parquet{words}", self.refused())
        for content in (b"PAR1 nonsense", b"PAR1" + b"\0" * 100 + b"PAR1"):
            self.write("a.parquet", content)
            self.assertIn("in/a.parquet: cannot be read as a Parquet file", self.refused())
        self.table("a.parquet", text=["a", "b" * 50])
        with unittest.mock.patch.object(_tables, "MOST_TEXT_BYTES", 49):
            self.assertIn("in/a.parquet[1]: the text has 50 bytes", self.refused())

    def test_each_row_of_a_datasets_folder_is_a_document(self):
        self.dataset("b", ["one", "two", "three"], ["four"])
        self.write("a.txt", "text")
        self.assertEqual(self.prepare().text, "text|one|two|three|four|")
        self.assertEqual(self.prepare(paths=[self.folder / "b"]).text, "one|two|three|four|")

    def test_a_datasets_folder_that_is_not_whole_is_named(self):
        folder = self.dataset("d", ["x"], [None, "y"])
        self.assertIn("d/data-00001-of-00002.arrow[0]: the row has null", self.refused())
        for state, words in (("{}", "does not state the files"), ("[", "does not state the files"),
                             ('{"_data_files": [{"filename": "../x"}]}', "not one of the folder"),
                             ('{"_data_files": [], "_indices_data_files": [1]}', "an old version"),
                             ('{"_data_files": [{"filename": "gone"}]}', "No such file")):
            (folder / "state.json").write_text(state)
            self.assertIn(words, self.refused())
        (folder / "bad").write_text("hello")
        (folder / "state.json").write_text('{"_data_files": [{"filename": "bad"}]}')
        self.assertIn("d/bad: cannot be read as an Arrow file", self.refused())
        (folder / "state.json").unlink()
        (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        self.assertIn("d has several splits of a dataset", self.refused())

    def test_ill_formed_texts_of_a_column_are_replaced(self):
        import pyarrow
        import pyarrow.parquet
        texts = pyarrow.StringArray.from_buffers(
            2, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0"), pyarrow.py_buffer(b"a\xffb"))
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), self.folder / "a.parquet")
        done = self.prepare()
        self.assertEqual((done.text, done.result["replaced"]), ("a\ufffd|b|", 1))

    @needs_program
    def test_zstd_is_decompressed_as_by_the_command(self):
        import pyarrow
        line = b'{"text": "x"}\n'
        frame = pyarrow.Codec("zstd").compress(line * 1000, asbytes=True)
        skipped = b"\x52\x2a\x4d\x18\3\0\0\0abc"
        self.write("a.jsonl.zst", skipped + frame + frame + skipped)
        self.write("b.zst", frame)
        self.assert_equal_to_the_command("--json-key", "text")
        for damaged in (frame[:-3], frame + b"junk"):
            self.write("a.jsonl.zst", damaged)
            self.assertEqual(self.by_the_command().code, 2)
            self.assertIn("in/a.jsonl.zst: its zstd data cannot be decompressed", self.refused())


class FakeSlow:
    """A tokenizer of transformers that is written in Python."""

    is_fast = False
    eos_token_id = 2

    def get_vocab(self):
        return {"</s>": 2, "x": 9}

    def __call__(self, texts, **_):
        return {"input_ids": [[len(text) % 11] for text in texts]}


class SlowTokenizerTest(DataCase):
    def test_ids_beyond_the_vocabulary_are_refused(self):
        self.write("a.jsonl", '{"text": "123456789"}\n{"text": "1234567890"}\n')
        tokenizer = _tokenizers.SlowTokenizer(FakeSlow(), 10, 2)
        with unittest.mock.patch.object(_prepare, "load", lambda *_: tokenizer):
            self.assertIn("in/a.jsonl:2: the tokenizer returned the token 10, which is not in "
                          "[0, 10)", self.refused("--tokenizer", "x"))
            self.write("a.jsonl", '{"text": "123456789"}\n')
            self.assertEqual(self.prepare("--tokenizer", "x").tokens, [9, 2])


@needs("transformers")
class TransformersTest(DataCase):
    def test_what_transformers_loads_gives_its_ids(self):
        import transformers
        slow, fast = self.home / "slow", self.home / "fast"
        transformers.ByT5Tokenizer().save_pretrained(slow)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=unigram(), eos_token="</s>", unk_token="<unk>").save_pretrained(fast)
        texts = [TEXT, "the cat", "x </s> y"]
        self.write("a.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
        for folder, is_fast in ((slow, False), (fast, True)):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            self.assertEqual(tokenizer.is_fast, is_fast)
            with unittest.mock.patch.object(_prepare, "_SMALL_BYTES", 0):
                done = self.prepare("--tokenizer", folder, "--processes", 2)
            self.assertEqual(done.code, 0, done.err)
            expected = []
            for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]:
                expected += [*ids, tokenizer.eos_token_id]
            self.assertEqual(done.tokens, expected)

    @needs("sentencepiece")
    def test_a_model_of_sentencepiece_gives_its_ids(self):
        import sentencepiece
        (self.home / "text").write_text(TEXT * 30)
        text = "the cat Größe 日本語 👍"
        self.write("a", text)
        for kind, name, file in (("bpe", "LlamaTokenizer", "tokenizer.model"),
                                 ("unigram", "T5Tokenizer", "spiece.model")):
            folder = self.home / kind
            folder.mkdir()
            sentencepiece.SentencePieceTrainer.train(
                input=str(self.home / "text"), model_prefix=str(folder / "m"), vocab_size=290,
                model_type=kind, byte_fallback=True, hard_vocab_limit=False, minloglevel=2)
            (folder / "m.model").rename(folder / file)
            (folder / "tokenizer_config.json").write_text(json.dumps({
                "tokenizer_class": name, "eos_token": "</s>", "unk_token": "<unk>"}))
            with self.subTest(kind):
                done = self.prepare("--tokenizer", folder)
                model = sentencepiece.SentencePieceProcessor(model_file=str(folder / file))
                self.assertEqual(done.tokens, [*model.encode(text), model.eos_id()])

    def test_what_it_cannot_load_is_named(self):
        self.write("a", "x")
        self.assertIn("the package transformers cannot load it: ", self.refused(
            "--tokenizer", self.folder))

    @needs("datasets")
    def test_folders_that_datasets_has_written_are_read(self):
        import datasets
        import pyarrow
        table = pyarrow.table({"text": [f"row {i}" for i in range(9)]})
        # Without a fingerprint, datasets pickles the table, which it can only in site-packages.
        made = datasets.Dataset(datasets.table.InMemoryTable(table), fingerprint="made")
        made.save_to_disk(self.folder / "d", num_shards=3)
        self.assertEqual(self.prepare().text, "".join(f"row {i}|" for i in range(9)))
        datasets.DatasetDict({"train": made, "test": made}).save_to_disk(self.folder / "e")
        self.assertIn("several splits", self.refused(paths=[self.folder / "e"]))


if __name__ == "__main__":
    unittest.main()
