#include "report/text/receipt_text.h"

#include <fmt/format.h>

#include "base/text/display_width.h"
#include "base/text/printable.h"
#include "base/text/wrapped.h"

namespace troupe {
namespace {

constexpr const char* kHeader[] = {"environment",     "topology", "model_mix", "batch_geometry",
                                   "sequence_length", "workload", "precision"};

// The fields of the whole job, which the receipt of one of its other plans lacks.
constexpr const char* kOfJob[] = {"job", "state", "compile", "write_method", "other_plans"};

constexpr const char* kSuspect = "suspect";
constexpr size_t kReceiptColumns = 80;

Json OrNull(bool has, const Json& value) { return has ? value : Json(nullptr); }
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json Counts(const google::protobuf::RepeatedPtrField<v1::OperationCount>& counts) {
  Json json = Json::object();
  for (const auto& entry : counts) json[entry.operation()] = entry.count();
  return json;
}

Json CompileToJson(const v1::Receipt::Compile& compile) {
  Json json = MessageToJson(compile);
  if (!compile.has_compiler()) {
    json["compiler"] = nullptr;
    return json;
  }
  json["compiler"]["cache_faults"] = Counts(compile.compiler().cache_faults());
  return json;
}

Json SteadyToJson(const v1::Receipt::Steady& steady) {
  const v1::StepFigures& mean = steady.mean();
  Json exposed = Json::object();
  Json total = Json::object();
  for (const auto& communication : mean.communication()) {
    exposed[communication.purpose()] = communication.exposed();
    total[communication.purpose()] = communication.total();
  }
  const bool any = steady.steps() > 0, measured = mean.has_data_wait_seconds();
  Json json = MessageToJson(steady, {"steps", "seconds"});
  json["fastest_step_seconds"] = OrNull(any, steady.fastest_step_seconds());
  json["slowest_step_seconds"] = OrNull(any, steady.slowest_step_seconds());
  json.update(MessageToJson(steady, {"tokens_per_second", "mfu", "mfu_convention"}));
  json["exposed_communication_seconds"] = OrNull(measured, exposed);
  json["communication_seconds"] = OrNull(measured, total);
  json["bubble"] = {{"planned", OrNull(steady.has_bubble_planned(), steady.bubble_planned())},
                    {"measured", OrNull(mean.has_bubble_ratio(), mean.bubble_ratio())}};
  const google::protobuf::Descriptor& figures = *v1::StepFigures::descriptor();
  for (int i = 0; i < figures.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = figures.field(i);
    if (field->is_repeated() || field->number() == v1::StepFigures::kBubbleRatioFieldNumber) {
      continue;  // have a shape of their own, above
    }
    const google::protobuf::Reflection& reflection = *mean.GetReflection();
    json[field->name()] =
        OrNull(reflection.HasField(mean, field), reflection.GetDouble(mean, field));
  }
  return json;
}

void AddDifferences(const std::string& path, const Json& a, const Json& b,
                    std::vector<std::string>* differences) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      AddDifferences(fmt::format("{}.{}", path, key), value,
                     b.contains(key) ? b[key] : Json(nullptr), differences);
    }
    for (const auto& [key, value] : b.items()) {
      if (!a.contains(key))
        AddDifferences(fmt::format("{}.{}", path, key), nullptr, value, differences);
    }
    return;
  }
  if (a == b) return;
  differences->push_back(
      fmt::format("{}: {} in the first, {} in the second", path, Dump(a), Dump(b)));
}

void AddRows(const std::string& path, const Json& value, ReceiptRows* rows) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      AddRows(path.empty() ? key : fmt::format("{}.{}", path, key), member, rows);
    }
    return;
  }
  if (value.is_array() && !value.empty()) {
    for (const auto& entry : value) AddRows(path, entry, rows);
    return;
  }
  std::string shown = value.is_string() ? value.get<std::string>() : Dump(value);
  if (value.is_null()) shown = "not measured";
  if (value.empty() && !value.is_null() && !value.is_string()) shown = "none";
  if (value.is_number_float()) shown = fmt::format("{:.6g}", value.get<double>());
  rows->emplace_back(path, shown);
}

}  // namespace

Json ReceiptToJson(const v1::Receipt& receipt) {
  Json blocks = Json::object();
  for (const auto& block : receipt.blocks()) blocks[block.block()] = block.count();
  Json json = MessageToJson(receipt, {"job", "state", "plan_digest"});
  json["environment"] =
      MessageToJson(receipt.environment(), {"devices", "driver", "libraries", "flags", "transports",
                                            "implementations", "hosts", "islands"});
  for (const char* unknown : {"driver", "libraries"}) {
    Json& version = json["environment"][unknown];
    if (version.get_ref<const std::string&>().empty()) version = nullptr;
  }
  json.update(MessageToJson(receipt, {"topology"}));
  json["model_mix"] = {{"pattern", receipt.pattern()}, {"blocks", std::move(blocks)}};
  if (receipt.has_trained_parameters())
    json["model_mix"]["trained_parameters"] = receipt.trained_parameters();
  json.update(MessageToJson(receipt, {"batch_geometry", "sequence_length"}));
  json["workload"] = {{"family", receipt.workload_family()},
                      {"documents", receipt.document_mask() ? "masked" : "joined"}};
  json.update(MessageToJson(receipt, {"seen_pairs"}));
  json["precision"] = {{"intended", receipt.precision_intended()},
                       {"executed", OrNull(receipt.precision_executed())}};
  json["compile"] = receipt.has_compile() ? CompileToJson(receipt.compile()) : Json(nullptr);
  json.update(MessageToJson(
      receipt, {"compiler_options", "warm_up", "steps_apart", "schedule", "overlap_policy"}));
  json["bucket_policy"] = MessageToJson(receipt.bucket());
  json["bucket_policy"]["measured_on"] = receipt.bucket_measured_on();
  json["steady"] = SteadyToJson(receipt.steady());
  json["fallbacks"] = OrNull(receipt.ready(), Counts(receipt.fallbacks()));
  json["target_shape"] = {{"tokens_per_step", receipt.target_tokens_per_step()},
                          {"reached", receipt.target_reached()}};
  if (!receipt.target_missed().empty()) json["target_shape"]["why"] = receipt.target_missed();
  json["write_method"] = Counts(receipt.checkpoint_writes());
  json.update(MessageToJson(receipt, {"restarts", "moves", "suspect"}));
  Json others = Json::array();
  for (const auto& other : receipt.other_plans()) {
    others.push_back(ReceiptToJson(other));
    for (const char* field : kOfJob) others.back().erase(field);
  }
  json["other_plans"] = std::move(others);
  return json;
}

ReceiptRows ReceiptToRows(const Json& receipt) {
  ReceiptRows rows;
  if (receipt.contains(kSuspect)) AddRows(kSuspect, receipt[kSuspect], &rows);
  Json rest = receipt;
  for (const char* field : {kSuspect, "other_plans"}) rest.erase(field);
  AddRows("", rest, &rows);
  for (const Json& other : receipt.value("other_plans", Json::array())) {
    AddRows("other_plans", OtherPlanLine(other), &rows);
  }
  return rows;
}

std::string ReceiptToText(const Json& receipt) {
  std::string text;
  for (const auto& [path, shown] : ReceiptToRows(receipt)) {
    const std::string value = PrintableLine(shown);
    const std::string line = fmt::format("{:<46} {}", PrintableLine(path), value);
    text += DisplayColumns(line) <= kReceiptColumns
                ? line + "\n"
                : fmt::format("{}\n    {}\n", PrintableLine(path),
                              Wrapped(value, kReceiptColumns - 4, "    "));
  }
  return text;
}

std::string OtherPlanLine(const Json& receipt) {
  const Json& steady = receipt["steady"];
  const Json& rate = steady["tokens_per_second"];
  return fmt::format(
      "{}: {} steady steps, {}, {}, {}", receipt["plan_digest"].get<std::string>(),
      steady["steps"].get<int64_t>(),
      rate.is_null() ? "no tokens/s measured" : fmt::format("{:.6g} tokens/s", rate.get<double>()),
      receipt["precision"]["intended"].get<std::string>(), receipt["schedule"].get<std::string>());
}

std::vector<std::string> UnlikeFields(const Json& a, const Json& b) {
  std::vector<std::string> differences;
  for (const char* field : kHeader) {
    AddDifferences(field, a.value(field, Json()), b.value(field, Json()), &differences);
  }
  return differences;
}

}  // namespace troupe
