// The identity of a job's data: what two openings of the same data have in common, and other data
// have not.
//
// It has the numbers of documents and tokens, and the size and a digest of every file that samples
// are read from and, as the last one, of the description (data/dataset_description.h). A
// description that does not exist has no digest. The time to take the identity is limited: a file
// of tokens is digested by a sample of blocks of 4 KiB that are spread evenly over it, first and
// last included, and so is an index above 64 MiB. There are 256 blocks for a file, and fewer for
// each where a job has more than four data sets, but at least 16. A change between two blocks that
// keeps every number is not noticed.
//
// Pure functions.
#ifndef TROUPE_DATA_DATA_IDENTITY_H_
#define TROUPE_DATA_DATA_IDENTITY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "data/dataset.h"
#include "troupe/v1/data.pb.h"

namespace troupe {

v1::DataIdentity IdentityOf(const Dataset& dataset);

// Returns the digest of all bytes if they are at most `whole_bytes_max` or fit in the sample, else
// that of a sample of `blocks` blocks. REQUIRES: blocks >= 2.
std::string SampledDigest(std::span<const std::byte> bytes, int64_t whole_bytes_max,
                          int64_t blocks);

// One of two identities that must be the same.
struct DataSide {
  const v1::DataIdentity& identity;
  std::string who;  // "the job began with", "host a has"
};

// FAILED_PRECONDITION names the first data set that differs, and what it is on both sides. Where
// one of them is of an older version, which had no description, the other's counts for nothing.
Status CheckSameData(const DataSide& wanted, const DataSide& found);

}  // namespace troupe

#endif  // TROUPE_DATA_DATA_IDENTITY_H_
