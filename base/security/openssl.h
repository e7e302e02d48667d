// Owners of OpenSSL's objects, and its errors as text. OpenSSL queues its errors per thread, and
// gRPC takes a queued error for its own: code that calls OpenSSL begins with an ErrorScope.
#ifndef TROUPE_BASE_SECURITY_OPENSSL_H_
#define TROUPE_BASE_SECURITY_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe::openssl {

template <auto kFree>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using BigNumber = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

// Empties the thread's queue of errors at its begin and its end.
class ErrorScope {
 public:
  ErrorScope() { ERR_clear_error(); }
  ~ErrorScope() { ERR_clear_error(); }
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;
};

// Returns the reason of the oldest queued error, such as "bad base64 decode".
std::string OldestError();

// Returns all certificates of `pem`. INVALID_ARGUMENT if there is none, or if a block of `pem` is
// something else or incomplete.
StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem);

// INVALID_ARGUMENT unless `pem` has an unencrypted private key.
StatusOr<Key> ParseKey(std::string_view pem);

// Returns the URIs of the certificate's alternative names.
std::vector<std::string> UrisOf(X509* certificate);

// Returns the Unix time in seconds.
StatusOr<int64_t> ToSeconds(const ASN1_TIME* time);

// Return the object in PEM; a key without a password.
StatusOr<std::string> ToPem(const Certificate& certificate);
StatusOr<std::string> ToPem(const Key& key);

// Returns what was written to `bio`, a BIO of BIO_s_mem().
std::string TextOf(const Bio& bio);

}  // namespace troupe::openssl

#endif  // TROUPE_BASE_SECURITY_OPENSSL_H_
