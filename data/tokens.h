// Element types of token files: the codes of the `.idx` header of Megatron's indexed datasets, and
// one more that llm.c's files have.
#ifndef TROUPE_DATA_TOKENS_H_
#define TROUPE_DATA_TOKENS_H_

#include <cstdint>

namespace troupe {

enum class TokenType : uint8_t {
  kUint32 = 0,  // llm.c; no code of Megatron's
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat64 = 6,  // Megatron can write these; a token is a whole number all the same
  kFloat32 = 7,
  kUint16 = 8,
};

// Bytes of one token; 0 for what is no type.
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

// Whether Megatron's `.idx` knows the code.
constexpr bool IsIndexCode(uint8_t code) { return code >= 1 && code <= 8; }

// Megatron's choice for a vocabulary.
constexpr TokenType TokenTypeFor(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

// Layout of the `.idx` file, little-endian: magic[9], u64 version, u8 type, u64 sequences, u64
// document indices, then int32 lengths[S], int64 pointers[S], int64 document_indices[D], optionally
// int8 modes[S].
inline constexpr char kIndexMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
inline constexpr uint64_t kIndexVersion = 1;
inline constexpr int64_t kIndexHeaderBytes = 34;

}  // namespace troupe

#endif  // TROUPE_DATA_TOKENS_H_
