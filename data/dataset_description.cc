#include "data/dataset_description.h"

#include <nlohmann/json.hpp>

#include "base/text_file.h"

namespace troupe {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kDescriptionBytesMax = 1 << 20;

}  // namespace

std::string DescriptionPath(const std::string& prefix) { return prefix + ".troupe.json"; }

std::string DescriptionText(const DatasetDescription& description) {
  const OrderedJson json = {{"tokenizer", description.tokenizer},
                            {"vocab_size", description.vocab_size},
                            {"end_of_document", description.end_of_document},
                            {"tokens", description.tokens},
                            {"text_bytes", description.text_bytes}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

StatusOr<std::optional<std::string>> ReadDescription(FileSystem& files, const std::string& prefix) {
  StatusOr<std::string> text =
      ReadFile(files, DescriptionPath(prefix), kDescriptionBytesMax, SymbolicLinks::kFollow);
  if (text.status().code() == StatusCode::kNotFound) return std::nullopt;
  TROUPE_RETURN_IF_ERROR(text.status());
  return std::optional(*std::move(text));
}

Status CheckDescription(std::string_view text, const std::string& prefix, int64_t tokens,
                        int64_t vocab_size) {
  const std::string path = DescriptionPath(prefix);
  if (IsGitLfsPointer(text)) return Annotate(GitLfsPointerFault(), path);
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return InvalidArgument(
        "{}: is no JSON object, as `troupe data prepare` writes it; put the former file back, or "
        "prepare the data again",
        path);
  }
  const auto number = [&](const char* key) -> int64_t {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
  };
  if (number("tokens") != tokens) {
    return InvalidArgument(
        "{}: tokens is {}, but {}.bin has {}: it describes another dataset; put the former files "
        "back, or prepare the data again",
        path, number("tokens"), prefix, tokens);
  }
  if (number("vocab_size") < 1) return InvalidArgument("{}: has no vocab_size", path);
  if (number("vocab_size") > vocab_size) {
    return InvalidArgument("model.vocab_size {} is below the {} of the tokenizer of {}", vocab_size,
                           number("vocab_size"), prefix);
  }
  return OkStatus();
}

}  // namespace troupe
