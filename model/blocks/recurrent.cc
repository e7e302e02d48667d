// Blocks M and R: recurrent blocks. A pattern may name them, and this build cannot build them.
#include "model/blocks/block_kind.h"

namespace troupe::model {

constinit const BlockKind kRecurrentBlockM = {.letter = 'M', .is_recurrent = true};
constinit const BlockKind kRecurrentBlockR = {.letter = 'R', .is_recurrent = true};

}  // namespace troupe::model
