// Element types of token files: the codes in the `.idx` header of Megatron's indexed datasets, and
// one more type for llm.c's files.
#ifndef TROUPE_DATA_TOKENS_H_
#define TROUPE_DATA_TOKENS_H_

#include <cstdint>

namespace troupe {

enum class TokenType : uint8_t {
  kUint32 = 0,  // llm.c; not one of Megatron's codes
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat64 = 6,  // Megatron can write these; a token is still an integer
  kFloat32 = 7,
  kUint16 = 8,
};

// Returns the bytes of one token, or 0 for an unknown type.
constexpr int64_t TokenBytes(TokenType type) {
  switch (type) {
    case TokenType::kUint8:
    case TokenType::kInt8:
      return 1;
    case TokenType::kInt16:
    case TokenType::kUint16:
      return 2;
    case TokenType::kUint32:
    case TokenType::kInt32:
    case TokenType::kFloat32:
      return 4;
    case TokenType::kInt64:
    case TokenType::kFloat64:
      return 8;
  }
  return 0;
}

// Returns whether Megatron's `.idx` format has the code.
constexpr bool IsIndexCode(uint8_t code) { return code >= 1 && code <= 8; }

// Returns Megatron's choice of type for a vocabulary.
constexpr TokenType TokenTypeFor(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

// The layout of the `.idx` file, little-endian: magic[9], u64 version, u8 type, u64 sequences, u64
// document indices, then int32 lengths[S], int64 pointers[S], int64 document_indices[D], optionally
// int8 modes[S].
inline constexpr char kIndexMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
inline constexpr uint64_t kIndexVersion = 1;
inline constexpr int64_t kIndexHeaderBytes = 34;

}  // namespace troupe

#endif  // TROUPE_DATA_TOKENS_H_
