// Decodes the texts of a URL. Decoded texts are UTF-8 without control characters; a text that would
// not be one, or has a '%' that no two hexadecimal digits follow, gives nothing. Pure.
#ifndef TROUPE_BASE_HTTP_URL_TEXT_H_
#define TROUPE_BASE_HTTP_URL_TEXT_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

using QueryPairs = std::map<std::string, std::string>;  // keys and their values

// Returns the keys and values of a query such as "state=RUNNING&namespace=a+b", in which '+' is a
// space. Nothing if one of them cannot be decoded, or if two keys are equal. A key without '=' has
// an empty value.
std::optional<QueryPairs> DecodeQuery(std::string_view query);

// Returns the text of a path or a part of one. A '/' of the result may have been "%2F".
std::optional<std::string> DecodePath(std::string_view path);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_URL_TEXT_H_
