#include "interop/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "interop/testing.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TokenizerFilesTest : public ::testing::Test {
 protected:
  TokenizerFilesTest() {
    for (const char* name : {"hf", "to"}) std::filesystem::create_directory(Child(name));
  }
  std::string Child(const std::string& name) { return folder_.Child(name); }

  std::string FaultOf(const std::string& directory) {
    const auto found = FindTokenizerFiles(files_, directory);
    return found.ok() ? "" : ToString(found.status());
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(TokenizerFilesTest, TheKnownFilesAreCopiedUnchangedAndNoOthers) {
  for (const char* name : {"config.json", "model.safetensors", "modeling.py", "README.md"})
    WriteText(Child("hf/") + name, "not copied");
  EXPECT_FALSE(FindTokenizerFiles(files_, Child("hf"))->has_tokenizer);
  WriteText(Child("hf/generation_config.json"), "{}");
  EXPECT_FALSE(FindTokenizerFiles(files_, Child("hf"))->has_tokenizer);
  const std::string binary("\0\n\xff", 3);
  WriteText(Child("hf/tokenizer.model"), binary);
  WriteText(Child("hf/chat_template.jinja"), "");
  const auto found = FindTokenizerFiles(files_, Child("hf"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->has_tokenizer);
  EXPECT_THAT(found->names,
              ElementsAre("tokenizer.model", "chat_template.jinja", "generation_config.json"));
  const Status copied = CopyTokenizerFiles(files_, *found, Child("to"));
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_EQ(ReadText(Child("to/tokenizer.model")), binary);
  EXPECT_EQ(ReadText(Child("to/chat_template.jinja")), "");
  EXPECT_EQ(files_.List(Child("to"))->size(), 3u);
}

TEST_F(TokenizerFilesTest, ChatTemplatesOfTheirOwnFolderAreCopied) {
  std::filesystem::create_directory(Child("hf/additional_chat_templates"));
  WriteText(Child("hf/additional_chat_templates/tool_use.jinja"), "{{ messages }}");
  WriteText(Child("hf/additional_chat_templates/notes.txt"), "");
  const auto found = FindTokenizerFiles(files_, Child("hf"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->names, ElementsAre("additional_chat_templates/tool_use.jinja"));
  ASSERT_TRUE(CopyTokenizerFiles(files_, *found, Child("to")).ok());
  EXPECT_EQ(ReadText(Child("to/additional_chat_templates/tool_use.jinja")), "{{ messages }}");
  WriteText(Child("hf/additional_chat_templates/a\xff.jinja"), "");
  EXPECT_THAT(FaultOf(Child("hf")), HasSubstr("has a file whose name is not UTF-8"));
}

// A cache of models has links from a snapshot's names to files of blobs.
TEST_F(TokenizerFilesTest, LinksAreFollowedAndTheirTargetsCopied) {
  std::filesystem::create_directory(Child("blobs"));
  WriteText(Child("blobs/1"), "{}");
  std::filesystem::create_symlink("../blobs/1", Child("hf/tokenizer.json"));
  std::filesystem::create_directory_symlink("hf", Child("snapshot"));
  const auto found = FindTokenizerFiles(files_, Child("snapshot"));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(CopyTokenizerFiles(files_, *found, Child("to")).ok());
  EXPECT_FALSE(std::filesystem::is_symlink(Child("to/tokenizer.json")));
  EXPECT_EQ(ReadText(Child("to/tokenizer.json")), "{}");
  std::filesystem::remove(Child("blobs/1"));
  EXPECT_EQ(FaultOf(Child("hf")), "INVALID_ARGUMENT: " + Child("hf/tokenizer.json") +
                                      " is a symbolic link to a file that does not exist");
}

TEST_F(TokenizerFilesTest, ADirectoryWithoutThemHasNoneAndAFileIsRefused) {
  EXPECT_THAT(FindTokenizerFiles(files_, Child("hf"))->names, IsEmpty());
  EXPECT_EQ(FindTokenizerFiles(files_, Child("nowhere")).status().code(), StatusCode::kNotFound);
  WriteText(Child("file"), "");
  EXPECT_EQ(FaultOf(Child("file")), "INVALID_ARGUMENT: " + Child("file") + " is a file");
}

TEST_F(TokenizerFilesTest, AnEntryThatCannotBeCopiedIsNamed) {
  std::filesystem::create_directory(Child("hf/vocab.json"));
  EXPECT_EQ(FaultOf(Child("hf")),
            "INVALID_ARGUMENT: " + Child("hf/vocab.json") + " is not a regular file");
  std::filesystem::remove(Child("hf/vocab.json"));
  WriteText(Child("hf/vocab.json"), "");
  std::filesystem::resize_file(Child("hf/vocab.json"), kTokenizerFileBytesMax + 1);
  EXPECT_EQ(FaultOf(Child("hf")), "INVALID_ARGUMENT: " + Child("hf/vocab.json") +
                                      " has 268435457 bytes, above the limit of 268435456");
}

TEST_F(TokenizerFilesTest, AFileThatCannotBeReadIsNamedBeforeAnythingIsCopied) {
  WriteText(Child("hf/tokenizer.json"), "{}");
  for (const FileOperation operation : {FileOperation::kOpen, FileOperation::kRead}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .path_contains = "tokenizer.json", .error_number = EACCES});
    EXPECT_THAT(ToString(FindTokenizerFiles(faulty, Child("hf")).status()),
                HasSubstr(Child("hf/tokenizer.json") + ": Permission denied"));
  }
}

TEST_F(TokenizerFilesTest, AnEmptyFileAndOneThatIsNoJsonAreNamed) {
  WriteText(Child("hf/tokenizer.json"), "");
  EXPECT_THAT(FaultOf(Child("hf")), HasSubstr("hf/tokenizer.json is empty"));
  WriteText(Child("hf/tokenizer.json"), "{\"model\": ");
  EXPECT_THAT(FaultOf(Child("hf")), HasSubstr("hf/tokenizer.json is not JSON"));
}

TEST_F(TokenizerFilesTest, APointerOfGitLfsAndAFileThatIsThereAreNamed) {
  WriteText(Child("hf/tokenizer.json"), std::string(kGitLfsPointerBegin) + "v1\noid sha256:0\n");
  EXPECT_THAT(FaultOf(Child("hf")), HasSubstr("hf/tokenizer.json: is a Git LFS pointer"));
  WriteText(Child("hf/tokenizer.json"), "\"new\"");
  const auto found = FindTokenizerFiles(files_, Child("hf"));
  ASSERT_TRUE(found.ok()) << found.status();
  WriteText(Child("to/tokenizer.json"), "old");
  EXPECT_EQ(CopyTokenizerFiles(files_, *found, Child("to")).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadText(Child("to/tokenizer.json")), "old");
}

TEST_F(TokenizerFilesTest, TheFilesWithAVocabularyAreListedForMessages) {
  EXPECT_EQ(TokenizerFileNames(),
            "tokenizer.json, tokenizer.model, tekken.json, spiece.model, vocab.json or vocab.txt");
}

}  // namespace
}  // namespace troupe
