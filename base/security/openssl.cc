#include "base/security/openssl.h"

#include <openssl/pem.h>

#include <ctime>
#include <limits>
#include <utility>

namespace troupe::openssl {
namespace {

// Returns a reader of `text`, which must outlive it.
Bio ReaderOf(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Answers OpenSSL's question for the password of a key, which it would else ask on the terminal.
int RefuseToAnswer(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

std::string OldestError() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  return reason == nullptr ? "unknown error" : reason;
}

StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem) {
  if (pem.size() > std::numeric_limits<int>::max()) return InvalidArgument("it is too long");
  constexpr std::string_view kBegin = "-----BEGIN ";
  size_t blocks = 0;
  for (size_t at = pem.find(kBegin); at != pem.npos; at = pem.find(kBegin, at + 1)) ++blocks;
  if (blocks == 0) return InvalidArgument("it has no certificate in PEM");
  const Bio reader = ReaderOf(pem);
  std::vector<Certificate> certificates;
  while (certificates.size() < blocks) {
    Certificate certificate(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) {
      return InvalidArgument("block {} of {} is not a whole certificate in PEM: {}",
                             certificates.size() + 1, blocks, OldestError());
    }
    certificates.push_back(std::move(certificate));
  }
  return certificates;
}

StatusOr<Key> ParseKey(std::string_view pem) {
  if (pem.size() > std::numeric_limits<int>::max()) return InvalidArgument("it is too long");
  bool is_encrypted = false;
  Key key(PEM_read_bio_PrivateKey(ReaderOf(pem).get(), nullptr, RefuseToAnswer, &is_encrypted));
  if (is_encrypted) return InvalidArgument("the key is encrypted; it must have no password");
  if (key == nullptr) {
    return InvalidArgument("it has no whole private key in PEM: {}", OldestError());
  }
  return key;
}

StatusOr<int64_t> ToSeconds(const ASN1_TIME* time) {
  std::tm broken_down{};
  if (ASN1_TIME_to_tm(time, &broken_down) != 1) {
    return InvalidArgument("the certificate's time of validity cannot be read");
  }
  return timegm(&broken_down);
}

std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names == nullptr ? 0 : sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

StatusOr<std::string> ToPem(const Certificate& certificate) {
  const Bio text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(text.get(), certificate.get()) != 1)
    return Internal("OpenSSL cannot write a certificate: {}", OldestError());
  return TextOf(text);
}

StatusOr<std::string> ToPem(const Key& key) {
  const Bio text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
      1) {
    return Internal("OpenSSL cannot write a private key: {}", OldestError());
  }
  return TextOf(text);
}

std::string TextOf(const Bio& bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace troupe::openssl
