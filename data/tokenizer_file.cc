#include "data/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "base/text_file.h"
#include "data/byte_pair_tokenizer.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFileBytesMax = int64_t{256} << 20;

std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

bool IsAbsent(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null();
}

// The alphabet in which vocabularies write a byte as a printable character: 21–7E, A1–AC and AE–FF
// as themselves, and the others, in their order, from U+0100.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    bytes_.fill(-1);
    int other = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                             (byte >= 0xAE && byte <= 0xFF);
      bytes_[static_cast<size_t>(printable ? byte : other++)] = static_cast<int16_t>(byte);
    }
  }

  // Returns the bytes that `text`, well-formed UTF-8, represents; absent if a character represents
  // no byte.
  std::optional<std::string> Decode(std::string_view text) const {
    std::string bytes;
    for (size_t i = 0; i < text.size();) {
      const unsigned lead = static_cast<unsigned char>(text[i++]);
      unsigned character = lead;
      if (lead >= 0x80) {
        if (lead >= 0xE0) return std::nullopt;  // above U+07FF
        character = (lead & 0x1F) << 6 | (static_cast<unsigned char>(text[i++]) & 0x3F);
      }
      if (character >= bytes_.size() || bytes_[character] < 0) return std::nullopt;
      bytes += static_cast<char>(bytes_[character]);
    }
    return bytes;
  }

 private:
  std::array<int16_t, 0x144> bytes_;
};

class Loader {
 public:
  Loader(FileSystem& files, const std::string& path) : files_(files), path_(path) {}

  StatusOr<std::unique_ptr<Tokenizer>> Run(std::optional<int64_t> end_of_document) {
    TROUPE_ASSIGN_OR_RETURN(const Json root, ReadJson(path_));
    TROUPE_RETURN_IF_ERROR(
        OnlyKeys(root, "",
                 {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                  "post_processor", "decoder", "model"}));
    for (const char* key : {"truncation", "padding", "normalizer"}) {
      if (!IsAbsent(root, key)) return Refuse(key, root[key]);
    }
    if (IsAbsent(root, "model")) return Missing("model");
    TROUPE_RETURN_IF_ERROR(Vocabulary(root["model"]));
    TROUPE_ASSIGN_OR_RETURN(BytePairModel model, Model(root["model"]));
    if (!IsAbsent(root, "added_tokens")) TROUPE_RETURN_IF_ERROR(Added(root["added_tokens"]));
    if (IsAbsent(root, "pre_tokenizer")) return Missing("pre_tokenizer");
    TROUPE_RETURN_IF_ERROR(PreTokenizer(root["pre_tokenizer"]));
    TROUPE_ASSIGN_OR_RETURN(const int32_t end, EndOfDocument(end_of_document));
    return std::make_unique<BytePairTokenizer>(
        BytePairDescription{.model = std::move(model),
                            .raw_added = AddedTokens(raw_added_),
                            .normalized_added = AddedTokens(normalized_added_),
                            .add_prefix_space = add_prefix_space_,
                            .patterns = std::move(patterns_),
                            .vocab_size = vocab_size_,
                            .end_of_document = end});
  }

 private:
  Status Refuse(std::string_view key, const Json& value) const {
    return InvalidArgument("{}: {} is {}, which is not supported", path_, key, Shown(value));
  }
  Status Missing(std::string_view key) const {
    return InvalidArgument("{}: {} is missing", path_, key);
  }

  StatusOr<Json> ReadJson(const std::string& path) const {
    TROUPE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(files_, path, kFileBytesMax, SymbolicLinks::kFollow));
    if (IsGitLfsPointer(text)) return Annotate(GitLfsPointerFault(), path);
    Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!root.is_object()) return InvalidArgument("{}: is not a JSON object", path);
    return root;
  }

  Status OnlyKeys(const Json& object, const std::string& at,
                  std::initializer_list<std::string_view> known) const {
    if (!object.is_object()) {
      return InvalidArgument("{}: {} is {}, not an object", path_, at, Shown(object));
    }
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        return Refuse(at + key, value);
      }
    }
    return OkStatus();
  }

  StatusOr<bool> Flag(const Json& object, const std::string& at, const char* key,
                      std::optional<bool> absent) const {
    if (IsAbsent(object, key)) {
      if (!absent.has_value()) return Missing(at + key);
      return *absent;
    }
    if (!object[key].is_boolean()) return Refuse(at + key, object[key]);
    return object[key].get<bool>();
  }

  // Returns the string at `key`, or "" if it is absent.
  StatusOr<std::string> Word(const Json& object, const std::string& at, const char* key) const {
    if (IsAbsent(object, key)) return std::string();
    if (!object[key].is_string()) return Refuse(at + key, object[key]);
    return object[key].get<std::string>();
  }

  Status Vocabulary(const Json& model) {
    TROUPE_RETURN_IF_ERROR(
        OnlyKeys(model, "model.",
                 {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                  "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
    // Old files omit the type.
    TROUPE_ASSIGN_OR_RETURN(const std::string type, Word(model, "model.", "type"));
    if (!type.empty() && type != "BPE") return Refuse("model.type", model["type"]);
    if (IsAbsent(model, "vocab")) return Missing("model.vocab");
    const Json& vocab = model["vocab"];
    if (!vocab.is_object()) return Refuse("model.vocab", vocab);
    std::vector<bool> taken(vocab.size());
    for (const auto& [token, id] : vocab.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab.size()) {
        return InvalidArgument(
            "{}: model.vocab[{}] is {}, not in [0, {}), the number of its tokens", path_,
            Shown(token), Shown(id), vocab.size());
      }
      const size_t value = id.get<size_t>();
      if (taken[value]) {
        return InvalidArgument("{}: model.vocab[{}] is {}, which another token has too", path_,
                               Shown(token), value);
      }
      taken[value] = true;
      vocab_.emplace(token, static_cast<int32_t>(value));
    }
    if (vocab_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 2)) {
      return InvalidArgument("{}: model.vocab has {} tokens", path_, vocab_.size());
    }
    vocab_size_ = static_cast<int64_t>(vocab_.size());
    return OkStatus();
  }

  StatusOr<BytePairModel> Model(const Json& model) const {
    if (!IsAbsent(model, "dropout") && model["dropout"] != 0) {
      return Refuse("model.dropout", model["dropout"]);
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      TROUPE_ASSIGN_OR_RETURN(const std::string affix, Word(model, "model.", key));
      if (!affix.empty()) return Refuse(fmt::format("model.{}", key), model[key]);
    }
    // unk_token and fuse_unk concern bytes without a token, and there are none.
    TROUPE_ASSIGN_OR_RETURN(const bool fallback, Flag(model, "model.", "byte_fallback", false));
    if (fallback) return Refuse("model.byte_fallback", model["byte_fallback"]);
    TROUPE_ASSIGN_OR_RETURN(const bool whole_words, Flag(model, "model.", "ignore_merges", false));

    std::array<int32_t, 256> byte_ids;
    byte_ids.fill(-1);
    std::unordered_map<std::string, int32_t> words;
    for (const auto& [token, id] : vocab_) {
      std::optional<std::string> bytes = alphabet_.Decode(token);
      if (!bytes.has_value() || bytes->empty()) continue;  // no piece of text can be such a token
      if (bytes->size() == 1) byte_ids[static_cast<unsigned char>((*bytes)[0])] = id;
      if (whole_words) words.emplace(*std::move(bytes), id);
    }
    for (int byte = 0; byte < 256; ++byte) {
      if (byte_ids[static_cast<size_t>(byte)] < 0) {
        return InvalidArgument(
            "{}: model.vocab has no token for byte {:#04x}: this is not a byte-level BPE", path_,
            byte);
      }
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<BytePairModel::Merge> merges, Merges(model));
    return BytePairModel(byte_ids, merges, std::move(words));
  }

  StatusOr<std::vector<BytePairModel::Merge>> Merges(const Json& model) const {
    if (IsAbsent(model, "merges")) return Missing("model.merges");
    const Json& list = model["merges"];
    if (!list.is_array()) return Refuse("model.merges", list);
    std::vector<BytePairModel::Merge> merges;
    for (size_t i = 0; i < list.size(); ++i) {
      std::string left, right;
      if (list[i].is_string()) {
        const std::string& pair = list[i].get_ref<const std::string&>();
        if (pair.starts_with("#version")) continue;
        const size_t space = pair.find(' ');
        if (space == std::string::npos || pair.find(' ', space + 1) != std::string::npos) {
          return Refuse(fmt::format("model.merges[{}]", i), list[i]);
        }
        left = pair.substr(0, space);
        right = pair.substr(space + 1);
      } else if (list[i].is_array() && list[i].size() == 2 && list[i][0].is_string() &&
                 list[i][1].is_string()) {
        left = list[i][0].get<std::string>();
        right = list[i][1].get<std::string>();
      } else {
        return Refuse(fmt::format("model.merges[{}]", i), list[i]);
      }
      BytePairModel::Merge merge{};
      for (const auto& [token, id] : {std::pair<std::string, int32_t*>{left, &merge.left},
                                      {right, &merge.right},
                                      {left + right, &merge.joined}}) {
        const auto found = vocab_.find(token);
        if (found == vocab_.end() || token.empty()) {
          return InvalidArgument("{}: model.merges[{}] is {}, but \"{}\" is not in model.vocab",
                                 path_, i, Shown(list[i]), token);
        }
        *id = found->second;
      }
      merges.push_back(merge);
    }
    return merges;
  }

  Status Added(const Json& list) {
    if (!list.is_array()) return Refuse("added_tokens", list);
    struct Entry {
      AddedToken token;
      bool raw;
    };
    std::vector<Entry> entries;
    for (size_t i = 0; i < list.size(); ++i) {
      const Json& entry = list[i];
      const std::string at = fmt::format("added_tokens[{}].", i);
      TROUPE_RETURN_IF_ERROR(
          OnlyKeys(entry, at,
                   {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        TROUPE_ASSIGN_OR_RETURN(const bool set, Flag(entry, at, key, false));
        if (set) return Refuse(at + key, entry[key]);
      }
      TROUPE_ASSIGN_OR_RETURN(const std::string content, Word(entry, at, "content"));
      if (content.empty()) return Missing(at + "content");
      TROUPE_ASSIGN_OR_RETURN(const bool special, Flag(entry, at, "special", false));
      TROUPE_ASSIGN_OR_RETURN(const bool normalized, Flag(entry, at, "normalized", !special));
      if (IsAbsent(entry, "id") || !entry["id"].is_number_unsigned() ||
          entry["id"].get<uint64_t>() > static_cast<uint64_t>(vocab_size_) + list.size()) {
        return InvalidArgument("{}: {}id is {}, not in [0, {}], the ids of all tokens", path_, at,
                               entry.contains("id") ? Shown(entry["id"]) : "missing",
                               vocab_size_ + static_cast<int64_t>(list.size()) - 1);
      }
      entries.push_back({{content, entry["id"].get<int32_t>()}, !normalized});
    }
    // The package adds them in the order of their ids and numbers those missing from the vocabulary
    // after it.
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.token.id < b.token.id; });
    for (const Entry& entry : entries) {
      const auto [place, is_new] =
          vocab_.emplace(entry.token.content, static_cast<int32_t>(vocab_size_));
      if (is_new) ++vocab_size_;
      if (place->second != entry.token.id) {
        return InvalidArgument("{}: added_tokens has id {} for {}, but the vocabulary has {}",
                               path_, entry.token.id, Shown(entry.token.content), place->second);
      }
      (entry.raw ? raw_added_ : normalized_added_).push_back(entry.token);
    }
    return OkStatus();
  }

  Status PreTokenizer(const Json& pre_tokenizer) {
    TROUPE_ASSIGN_OR_RETURN(const std::string type, TypeOf(pre_tokenizer, "pre_tokenizer."));
    if (type != "Sequence") return Step(pre_tokenizer, "pre_tokenizer.", type, /*is_last=*/true);
    TROUPE_RETURN_IF_ERROR(OnlyKeys(pre_tokenizer, "pre_tokenizer.", {"type", "pretokenizers"}));
    if (IsAbsent(pre_tokenizer, "pretokenizers")) return Missing("pre_tokenizer.pretokenizers");
    const Json& steps = pre_tokenizer["pretokenizers"];
    if (!steps.is_array() || steps.empty()) return Refuse("pre_tokenizer.pretokenizers", steps);
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string at = fmt::format("pre_tokenizer.pretokenizers[{}].", i);
      TROUPE_ASSIGN_OR_RETURN(const std::string step, TypeOf(steps[i], at));
      TROUPE_RETURN_IF_ERROR(Step(steps[i], at, step, i + 1 == steps.size()));
    }
    return OkStatus();
  }

  StatusOr<std::string> TypeOf(const Json& object, const std::string& at) const {
    if (!object.is_object()) {
      return InvalidArgument("{}: {} is {}, not an object", path_, at, Shown(object));
    }
    return Word(object, at, "type");
  }

  // The last step must be ByteLevel, which converts the pieces to bytes; no earlier step may be
  // one.
  Status Step(const Json& step, const std::string& at, const std::string& type, bool is_last) {
    if (type == "ByteLevel" && is_last) return ByteLevel(step, at);
    if (type == "Split" && !is_last) return Split(step, at);
    return Refuse(fmt::format("{}type{}", at, is_last ? " of the last step" : ""),
                  step.contains("type") ? step["type"] : Json());
  }

  Status ByteLevel(const Json& step, const std::string& at) {
    TROUPE_RETURN_IF_ERROR(
        OnlyKeys(step, at, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    TROUPE_ASSIGN_OR_RETURN(add_prefix_space_, Flag(step, at, "add_prefix_space", std::nullopt));
    TROUPE_ASSIGN_OR_RETURN(const bool use_regex, Flag(step, at, "use_regex", true));
    if (add_prefix_space_ && !patterns_.empty()) {
      return Refuse(at + "add_prefix_space after a Split", step["add_prefix_space"]);
    }
    return use_regex ? Pattern(kGpt2Pattern, at) : OkStatus();
  }

  Status Split(const Json& step, const std::string& at) {
    TROUPE_RETURN_IF_ERROR(OnlyKeys(step, at, {"type", "pattern", "behavior", "invert"}));
    TROUPE_ASSIGN_OR_RETURN(const bool invert, Flag(step, at, "invert", false));
    if (invert) return Refuse(at + "invert", step["invert"]);
    TROUPE_ASSIGN_OR_RETURN(const std::string behavior, Word(step, at, "behavior"));
    if (behavior != "Isolated") {
      return Refuse(at + "behavior", step.contains("behavior") ? step["behavior"] : Json());
    }
    if (IsAbsent(step, "pattern")) return Missing(at + "pattern");
    TROUPE_RETURN_IF_ERROR(OnlyKeys(step["pattern"], at + "pattern.", {"Regex"}));
    TROUPE_ASSIGN_OR_RETURN(const std::string regex,
                            Word(step["pattern"], at + "pattern.", "Regex"));
    if (regex.empty()) return Missing(at + "pattern.Regex");
    return Pattern(regex, at + "pattern");
  }

  Status Pattern(std::string_view pattern, const std::string& at) {
    auto compiled = SplitPattern::Compile(pattern);
    if (!compiled.ok()) return Annotate(compiled.status(), fmt::format("{}: {}", path_, at));
    patterns_.push_back(*std::move(compiled));
    return OkStatus();
  }

  StatusOr<int32_t> EndOfDocument(std::optional<int64_t> stated) const {
    if (stated.has_value()) {
      if (*stated >= 0 && *stated < vocab_size_) return static_cast<int32_t>(*stated);
      return InvalidArgument("end of document {} is not in [0, {}), the vocabulary of {}", *stated,
                             vocab_size_, path_);
    }
    TROUPE_ASSIGN_OR_RETURN(const std::string configured, ConfiguredEnd());
    if (!configured.empty()) {
      const auto found = vocab_.find(configured);
      if (found != vocab_.end()) return found->second;
      return InvalidArgument("{}: has no token \"{}\", the eos_token of tokenizer_config.json",
                             path_, configured);
    }
    for (const char* usual : {"<|endoftext|>", "<|end_of_text|>"}) {
      const auto found = vocab_.find(usual);
      if (found != vocab_.end()) return found->second;
    }
    return InvalidArgument(
        "{}: the token that ends a document is unknown: there is no eos_token in a "
        "tokenizer_config.json next to it and no token <|endoftext|> or <|end_of_text|>; state its "
        "id",
        path_);
  }

  // Returns eos_token from the tokenizer_config.json next to the file: a string, or the content of
  // an object; "" if there is no such file or key.
  StatusOr<std::string> ConfiguredEnd() const {
    const std::string path = JoinPath(ParentDirectory(path_), "tokenizer_config.json");
    const auto config = ReadJson(path);
    if (config.status().code() == StatusCode::kNotFound) return std::string();
    if (!config.ok()) return config.status();
    if (IsAbsent(*config, "eos_token")) return std::string();
    const Json& token = (*config)["eos_token"];
    const Json& text = token.is_object() && token.contains("content") ? token["content"] : token;
    if (!text.is_string()) {
      return InvalidArgument("{}: eos_token is {}, not the text of a token", path, Shown(token));
    }
    return text.get<std::string>();
  }

  FileSystem& files_;
  const std::string path_;
  const ByteAlphabet alphabet_;
  std::unordered_map<std::string, int32_t> vocab_;  // includes the added tokens once they are read
  int64_t vocab_size_ = 0;
  std::vector<AddedToken> raw_added_;
  std::vector<AddedToken> normalized_added_;
  bool add_prefix_space_ = false;
  std::vector<SplitPattern> patterns_;
};

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFile(FileSystem& files, const std::string& path,
                                                       std::optional<int64_t> end_of_document) {
  return Loader(files, path).Run(end_of_document);
}

}  // namespace troupe
