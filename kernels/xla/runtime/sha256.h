// SHA-256 of bytes that are added part by part.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SHA256_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SHA256_H_

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace troupe::kernels::xla {

// Not thread-safe.
class Sha256 {
 public:
  static constexpr size_t kBytes = 32;

  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::string_view bytes);
  // Returns the kBytes bytes of the digest. REQUIRES: neither was called before, nor is Add
  // afterwards.
  std::string Finish();
  // Returns it as 64 hexadecimal digits in lower case.
  std::string FinishAsText();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SHA256_H_
