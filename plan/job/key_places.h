// Where the keys of a job are stated, so that an error about a key names the place. Pure.
#ifndef TROUPE_PLAN_JOB_KEY_PLACES_H_
#define TROUPE_PLAN_JOB_KEY_PLACES_H_

#include <map>
#include <string>

#include "base/status.h"

namespace troupe {

// By path, such as "data.blend[0].weight": "job.yaml:3:5" (line and column) or "--set data.blend".
// The empty path is that of the whole file: "job.yaml".
using KeyPlaces = std::map<std::string, std::string, std::less<>>;

// Returns `status` with the place of its key after each violation: "training.steps is -1, not in
// [1, 2^40] (job.yaml:3:5)". For a key that is not stated it is the place of the first stated key
// that the violation names; else that of the innermost list or section around the key; else that of
// the whole file. A violation gets none if none of these is in `places`, or if its field is no key
// of a job. The code and the other payloads stay; a status without violations stays as it is.
Status WithPlaces(const Status& status, const KeyPlaces& places);

// The same for a result that may be an error.
template <typename T>
StatusOr<T> WithPlaces(StatusOr<T> result, const KeyPlaces& places) {
  if (result.ok()) return result;
  return WithPlaces(result.status(), places);
}

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_PLACES_H_
