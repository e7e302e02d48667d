#include "plan/job/key_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/text/wrapped.h"
#include "plan/job/job_defaults.h"
#include "plan/job/key_blocks.h"
#include "plan/job/key_schema.h"
#include "plan/job/unknown_key.h"
#include "plan/schedules/schedules.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kPageHead[] =
    "# Keys of the job file\n"
    "\n"
    "This page is for everybody who writes a job file. After it you can look up any key: its type, "
    "its\n"
    "default, its allowed values and its meaning. `troupe keys --markdown` prints the page from "
    "the\n"
    "schema, `proto/troupe/v1/job.proto`. `troupe keys PREFIX` prints a part of it:\n"
    "\n"
    "```\n"
    "$ troupe keys lr_schedule.warmup_steps\n"
    "lr_schedule.warmup_steps: integer in [0, 2^40], default 0\n"
    "    Steps in which the rate rises from 0.\n"
    "```\n"
    "\n"
    "An interval such as `(0, 1]` excludes 0 and includes 1. A relative path is relative to the "
    "folder of\n"
    "the job file; one that begins with `~` is refused, because only a shell expands it. "
    "Relations\n"
    "between keys are on the pages of the [index](README.md); `troupe plan JOB.yaml` names those "
    "that a\n"
    "job does not meet.\n"
    "\n"
    "| Key | Type | Default | Values | Meaning |\n"
    "|---|---|---|---|---|\n";

std::string TypeOf(const FieldDescriptor& field) {
  std::string type;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "boolean";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      type = "number";
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      type = "text";
      break;
    default:
      type = "integer";
  }
  if (!field.is_repeated()) return type;
  // The limit of a list is that of its entries.
  const v1::KeyOptions& options = KeyOptionsOf(field);
  return options.has_max() ? fmt::format("list of at most {} {}s", options.max(), type)
                           : fmt::format("list of {}s", type);
}

// A key whose values are named by a table of the code, and the text of all names, "A, B".
struct NamedInCode {
  const Descriptor* message;
  int field_number;
  std::string names;
};

// The names that a table of the code gives to the values of a key.
std::vector<std::string> NamesInCode(const FieldDescriptor& field) {
  const NamedInCode tables[] = {
      {v1::ModelSpec::descriptor(), v1::ModelSpec::kPresetFieldNumber, KnownPresets()},
      {v1::ParallelismSpec::descriptor(), v1::ParallelismSpec::kPipelineParallelScheduleFieldNumber,
       KnownSchedules()}};
  const auto table = std::ranges::find_if(tables, [&](const NamedInCode& one) {
    return one.message->FindFieldByNumber(one.field_number) == &field;
  });
  if (table == std::end(tables)) return {};
  std::string_view names = table->names;
  std::vector<std::string> list;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(", "), names.size());
    list.emplace_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 2, names.size()));
  }
  return list;
}

KeyRow MakeRow(const FieldDescriptor& field, const std::string& key) {
  const v1::KeyOptions& options = KeyOptionsOf(field);
  KeyRow row{.key = key, .type = TypeOf(field), .doc = options.doc()};
  if (options.blocks() != v1::BLOCK_TRAIT_ANY)
    row.doc += fmt::format(" Only with block {}.", BlocksThatRead(options));
  row.default_value = options.default_();
  row.absent = options.required()               ? "required"
               : !options.default_key().empty() ? options.default_key()
                                                : options.absent();
  if (!field.is_repeated()) row.range = RangeText(options);
  row.words = WordsOf(field);
  if (row.words.empty()) row.words = NamesInCode(field);
  return row;
}

// Removes every "[…]".
std::string WithoutIndices(std::string_view path) {
  std::string text(path);
  for (size_t begin = text.find('['); begin != std::string::npos; begin = text.find('[', begin)) {
    const size_t end = text.find(']', begin);
    if (end == std::string::npos) break;
    text.erase(begin, end + 1 - begin);
  }
  return text;
}

// `prefix` has no indices.
bool IsAtOrBelow(std::string_view key, std::string_view prefix) {
  const std::string plain = WithoutIndices(key);
  if (prefix.empty() || plain == prefix) return true;
  return plain.starts_with(prefix) && plain[prefix.size()] == '.';
}

// `path`: the path of the message with a dot at its end. `prefix` has no indices.
void AddRows(const Descriptor& type, const std::string& path, std::string_view prefix,
             std::vector<KeyRow>* rows) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string key = path + field.name();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddRows(*field.message_type(), key + (field.is_repeated() ? "[]." : "."), prefix, rows);
    } else if (IsAtOrBelow(key, prefix)) {
      rows->push_back(MakeRow(field, key));
    }
  }
}

}  // namespace

std::vector<KeyRow> KeyTable(std::string_view prefix) {
  std::vector<KeyRow> rows;
  AddRows(*v1::JobSpec::descriptor(), "", WithoutIndices(prefix), &rows);
  return rows;
}

Status NoSuchKey(std::string_view prefix) {
  const std::string hint = UnknownKeyText(*v1::JobSpec::descriptor(), WithoutIndices(prefix));
  return InvalidArgument("{}: the job file has no such key or section{}", prefix,
                         hint.empty() ? "; `troupe keys` lists all" : hint);
}

std::string KeyTableToText(const std::vector<KeyRow>& rows, size_t columns) {
  std::string text;
  for (const KeyRow& row : rows) {
    std::string values = fmt::format("{}: {}", row.key, row.type);
    if (!row.words.empty()) {
      values += fmt::format(", one of {}", fmt::join(row.words, " "));
    } else if (!row.range.empty()) {
      values += " in " + row.range;
    }
    const std::string& initial = row.default_value.empty() ? row.absent : row.default_value;
    if (!initial.empty()) values += (initial == "required" ? ", " : ", default ") + initial;
    text += Wrapped(values, columns, "        ", LongWords::kBroken) + "\n";
    text += WrappedBehind("    ", row.doc, columns) + "\n";
  }
  return text;
}

std::string KeyTableToMarkdown(const std::vector<KeyRow>& rows) {
  std::string text = kPageHead;
  for (const KeyRow& row : rows) {
    const std::string initial =
        row.default_value.empty() ? row.absent : fmt::format("`{}`", row.default_value);
    const std::string values =
        row.words.empty() ? row.range : fmt::format("{}", fmt::join(row.words, ", "));
    text +=
        fmt::format("| `{}` | {} | {} | {} | {} |\n", row.key, row.type, initial, values, row.doc);
  }
  return text;
}

}  // namespace troupe
