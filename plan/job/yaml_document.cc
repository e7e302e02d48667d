#include "plan/job/yaml_document.h"

#include <yaml-cpp/depthguard.h>

#include <algorithm>
#include <array>
#include <vector>

namespace troupe {
namespace {

// Returns the line of `text` with the index `number`, from 0; empty if there is none.
std::string_view LineAt(std::string_view text, int number) {
  for (; number > 0; --number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// Returns the place of an error. yaml-cpp reports one that it finds at the end of the text in the
// line after the last one; it is reported after the last character of the last line.
std::string PlaceOfError(std::string_view text, const YamlSource& source, YAML::Mark mark) {
  const auto lines = std::ranges::count(text, '\n') + (text.ends_with('\n') ? 0 : 1);
  if (mark.pos < std::ssize(text) && mark.line < lines) return PlaceIn(source, mark);
  while (text.ends_with('\n')) text.remove_suffix(1);
  mark.line = static_cast<int>(std::ranges::count(text, '\n'));
  mark.column = static_cast<int>(LineAt(text, mark.line).size());
  return PlaceIn(source, mark);
}

// Whether the error at `mark` is due to a tab that indents its line. Where brackets and quotes
// structure the text, a tab is allowed.
bool IsTabError(std::string_view text, const YAML::Exception& error) {
  const std::array<std::string_view, 4> by_indentation = {
      YAML::ErrorMsg::TAB_IN_INDENTATION, YAML::ErrorMsg::MAP_VALUE, YAML::ErrorMsg::MAP_KEY,
      YAML::ErrorMsg::BLOCK_ENTRY};
  if (error.mark.is_null() || std::ranges::count(by_indentation, error.msg) == 0) return false;
  const std::string_view line = LineAt(text, error.mark.line);
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

// The words of yaml-cpp, or plainer ones.
std::string PlainYamlError(std::string_view text, const YAML::Exception& error) {
  if (error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) return "a { is not closed";
  if (error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "a [ is not closed";
  if (IsTabError(text, error)) return "a tab indents this line; YAML is indented by spaces only";
  return error.msg;
}

}  // namespace

std::string PlaceIn(const YamlSource& source, const YAML::Mark& mark) {
  if (!source.has_lines || mark.is_null()) return source.name;
  return fmt::format("{}:{}:{}", source.name, mark.line + 1, mark.column + 1);
}

StatusOr<YAML::Node> LoadYaml(std::string_view text, const YamlSource& source) {
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      return InvalidArgument("{}: has {} YAML documents, not one{}",
                             PlaceIn(source, documents[1].Mark()), documents.size(),
                             source.has_lines ? "; the second begins here" : "");
    }
    return documents.empty() ? YAML::Node() : documents[0];
  } catch (const YAML::DeepRecursion& error) {
    return InvalidArgument("{}: is nested more than {} levels deep",
                           PlaceOfError(text, source, error.mark), error.depth() - 1);
  } catch (const YAML::Exception& error) {
    return InvalidArgument("{}: {}", PlaceOfError(text, source, error.mark),
                           PlainYamlError(text, error));
  } catch (const std::exception& error) {
    return InvalidArgument("{}: {}", source.name, error.what());
  }
}

}  // namespace troupe
