#include "plan/job/job_resource.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/job/key_blocks.h"
#include "plan/job/key_schema.h"
#include "plan/job/message_json.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kHead[] =
    "# Made by `troupe keys --kubernetes` from proto/troupe/v1/job.proto; do not edit.\n";
constexpr char kGroup[] = "troupe.dev";
constexpr char kVersion[] = "v1alpha1";
constexpr char kImmutable[] =
    "spec.job cannot be changed: delete the TroupeJob and apply it again, or give it another name";

std::string MeaningOf(const FieldDescriptor& field) {
  const v1::KeyOptions& options = KeyOptionsOf(field);
  std::string text = options.doc();
  const auto add = [&text](const std::string& sentence) {
    if (!text.empty()) text += ' ';
    text += sentence;
  };
  if (options.blocks() != v1::BLOCK_TRAIT_ANY)
    add(fmt::format("Only with block {}.", BlocksThatRead(options)));
  if (!options.default_().empty() && options.default_() != "{}") {
    add(fmt::format("Default: {}.", options.default_()));
  } else if (!options.default_key().empty()) {
    add(fmt::format("Default: that of {}.", options.default_key()));
  } else if (!options.absent().empty()) {
    add(fmt::format("If absent: {}.", options.absent()));
  }
  return text;
}

// A bound of an integer is written as an integer, because a decoder may refuse 1e+18 there.
Json RangeBound(double bound, bool is_integer) {
  return is_integer ? Json(static_cast<int64_t>(std::llround(bound))) : Json(bound);
}

void AddRange(const v1::KeyOptions& options, bool is_integer, Json* schema) {
  if (options.has_min()) (*schema)["minimum"] = RangeBound(options.min(), is_integer);
  if (options.has_above()) {
    (*schema)["minimum"] = RangeBound(options.above(), is_integer);
    (*schema)["exclusiveMinimum"] = true;
  }
  if (options.has_max()) (*schema)["maximum"] = RangeBound(options.max(), is_integer);
  if (options.has_below()) {
    (*schema)["maximum"] = RangeBound(options.below(), is_integer);
    (*schema)["exclusiveMaximum"] = true;
  }
}

Json ScalarSchema(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return {{"type", "number"}, {"format", "double"}};
    case FieldDescriptor::CPPTYPE_STRING:
      return {{"type", "string"}};
    case FieldDescriptor::CPPTYPE_INT32:
      return {{"type", "integer"}, {"format", "int32"}};
    default:
      return {{"type", "integer"}, {"format", "int64"}};
  }
}

Json MessageSchema(const Descriptor& type);

Json FieldSchema(const FieldDescriptor& field) {
  const v1::KeyOptions& options = KeyOptionsOf(field);
  Json value = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
                   ? MessageSchema(*field.message_type())
                   : ScalarSchema(field);
  const std::vector<std::string> words = WordsOf(field);
  if (!words.empty()) value["enum"] = words;
  Json schema;
  if (field.is_repeated()) {
    schema = {{"type", "array"}, {"items", std::move(value)}};
    if (options.has_max()) schema["maxItems"] = RangeBound(options.max(), true);
  } else {
    schema = std::move(value);
    AddRange(options, schema["type"] == "integer", &schema);
  }
  const std::string meaning = MeaningOf(field);
  if (!meaning.empty()) schema["description"] = meaning;
  return schema;
}

Json MessageSchema(const Descriptor& type) {
  Json properties = Json::object();
  Json required = Json::array();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    properties[field.name()] = FieldSchema(field);
    if (KeyOptionsOf(field).required()) required.push_back(field.name());
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json SpecSchema() {
  Json job = JobKeysSchema();
  job["description"] =
      "The job file: the keys of docs/job-keys.md, with paths as the pods see them. It cannot be "
      "changed.";
  return {{"type", "object"},
          {"description", "The job that is wanted."},
          {"required", {"job"}},
          {"properties",
           {{"job", std::move(job)},
            {"suspend",
             {{"type", "boolean"},
              {"description",
               "The job is stopped after a checkpoint and waits; false resumes it. Default: "
               "false."}}},
            {"cancelPolicy",
             {{"type", "string"},
              {"enum", {"Checkpoint", "Abort"}},
              {"description",
               "Whether a job that is deleted while it runs is stopped after a checkpoint "
               "(Checkpoint) or at once (Abort). Default: Checkpoint."}}}}},
          {"x-kubernetes-validations",
           Json::array({{{"rule", "self.job == oldSelf.job"}, {"message", kImmutable}}})}};
}

Json ConditionsSchema() {
  const auto text = [](const char* meaning) {
    return Json{{"type", "string"}, {"description", meaning}};
  };
  return {{"type", "array"},
          {"description", "Accepted, Suspended and Finished."},
          {"x-kubernetes-list-type", "map"},
          {"x-kubernetes-list-map-keys", {"type"}},
          {"items",
           {{"type", "object"},
            {"required", {"type", "status", "reason", "message", "lastTransitionTime"}},
            {"properties",
             {{"type", text("Accepted, Suspended or Finished.")},
              {"status",
               {{"type", "string"},
                {"enum", {"True", "False", "Unknown"}},
                {"description", "Whether the condition holds."}}},
              {"reason", text("The cause as one word.")},
              {"message", text("The cause for people, such as the error of a validation.")},
              {"observedGeneration",
               {{"type", "integer"},
                {"format", "int64"},
                {"description", "The generation of the object that the condition is about."}}},
              {"lastTransitionTime",
               {{"type", "string"},
                {"format", "date-time"},
                {"description", "When the status of the condition last changed."}}}}}}}};
}

Json StatusSchema() {
  const auto whole = [](const char* meaning) {
    return Json{{"type", "integer"}, {"format", "int64"}, {"description", meaning}};
  };
  const auto text = [](const char* meaning) {
    return Json{{"type", "string"}, {"description", meaning}};
  };
  return {
      {"type", "object"},
      {"description", "The job as the coordinator has it. Nothing here is about single ranks."},
      {"properties",
       {{"observedGeneration", whole("The generation of the object that the status is about.")},
        {"state", text("PENDING, SUSPENDED, REJECTED or DELETED, or the state of the job: QUEUED, "
                       "STARTING, RUNNING, CHECKPOINTING, MOVING, RECOVERING, SUCCEEDED, "
                       "FAILED or CANCELLED.")},
        {"jobName", text("The name of the job, as the command troupe takes it.")},
        {"step", whole("The last step.")},
        {"steps", whole("The steps of the job.")},
        {"loss", text("The loss of the last step.")},
        {"mfu", text("Model FLOPs utilisation of the last step, as a fraction.")},
        {"restarts", whole("Recoveries so far.")},
        {"remainingSeconds", whole("The remaining steps times the median of the newest ones.")},
        {"lastCheckpoint", text("The path of the newest committed checkpoint.")},
        {"conditions", ConditionsSchema()}}}};
}

Json Columns() {
  Json columns = Json::array();
  const auto add = [&columns](const char* name, const char* type, const char* path, int priority) {
    Json column = {{"name", name}, {"type", type}, {"jsonPath", path}};
    if (priority > 0) column["priority"] = priority;
    columns.push_back(std::move(column));
  };
  add("State", "string", ".status.state", 0);
  add("Step", "integer", ".status.step", 0);
  add("Steps", "integer", ".status.steps", 0);
  add("Loss", "string", ".status.loss", 0);
  add("MFU", "string", ".status.mfu", 0);
  add("Age", "date", ".metadata.creationTimestamp", 0);
  add("Job", "string", ".status.jobName", 1);
  add("Restarts", "integer", ".status.restarts", 1);
  add("Remaining", "integer", ".status.remainingSeconds", 1);
  add("Checkpoint", "string", ".status.lastCheckpoint", 1);
  return columns;
}

Json Definition() {
  Json schema = {{"type", "object"},
                 {"description", "A training job of Troupe."},
                 {"required", {"spec"}},
                 {"properties",
                  {{"apiVersion", {{"type", "string"}}},
                   {"kind", {{"type", "string"}}},
                   {"metadata", {{"type", "object"}}},
                   {"spec", SpecSchema()},
                   {"status", StatusSchema()}}}};
  Json version = {{"name", kVersion},
                  {"served", true},
                  {"storage", true},
                  {"subresources", {{"status", Json::object()}}},
                  {"additionalPrinterColumns", Columns()},
                  {"selectableFields", Json::array({{{"jsonPath", ".status.state"}}})},
                  {"schema", {{"openAPIV3Schema", std::move(schema)}}}};
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata",
           {{"name", fmt::format("troupejobs.{}", kGroup)},
            {"labels", {{"app.kubernetes.io/part-of", "troupe"}}}}},
          {"spec",
           {{"group", kGroup},
            {"scope", "Namespaced"},
            {"names",
             {{"kind", "TroupeJob"},
              {"listKind", "TroupeJobList"},
              {"plural", "troupejobs"},
              {"singular", "troupejob"},
              {"shortNames", {"tj"}}}},
            {"versions", Json::array({std::move(version)})}}}};
}

// Whether YAML reads `text` as the same text without quotes.
bool IsPlain(std::string_view text) {
  static constexpr std::string_view kNotText[] = {"true", "false", "null", "yes",
                                                  "no",   "on",    "off"};
  std::string word;
  for (const char c : text) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (std::ranges::find(kNotText, word) != std::end(kNotText)) return false;
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/' ||
           c == '_';
  };
  const std::string_view first = std::string_view(word).substr(word.starts_with('.') ? 1 : 0, 1);
  return !first.empty() && first[0] >= 'a' && first[0] <= 'z' && std::ranges::all_of(word, is_safe);
}

std::string ScalarToYaml(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return value.dump();  // the texts, numbers and empty containers of JSON are YAML
}

// Appends `value` as block YAML. `indent` is that of its lines; the first one is written after
// what the caller has appended.
void AppendYaml(const Json& value, size_t indent, std::string* text) {
  if (value.empty() || value.is_primitive()) {
    *text += ScalarToYaml(value) + "\n";
    return;
  }
  bool is_first = true;
  for (const auto& item : value.items()) {
    if (!std::exchange(is_first, false)) text->append(indent, ' ');
    const bool nests = item.value().is_structured() && !item.value().empty();
    if (value.is_array()) {
      *text += "- ";
      AppendYaml(item.value(), indent + 2, text);
      continue;
    }
    *text += ScalarToYaml(item.key()) + ":";
    *text += nests ? "\n" + std::string(indent + 2, ' ') : " ";
    AppendYaml(item.value(), indent + 2, text);
  }
}

}  // namespace

Json JobKeysSchema() { return MessageSchema(*v1::JobSpec::descriptor()); }

std::string JobResourceDefinition() {
  std::string text = kHead;
  AppendYaml(Definition(), 0, &text);
  return text;
}

}  // namespace troupe
