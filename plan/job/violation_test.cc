#include "plan/job/violation.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RefuseData, SaysAFieldAndItsValueOnce) {
  v1::JobSpec spec;
  spec.mutable_model()->set_vocab_size(100);
  spec.mutable_data()->set_train("/d/x");
  EXPECT_EQ(Message(RefuseData(spec, "model.vocab_size",
                               InvalidArgument("model.vocab_size 100 is below the 500 of d"))),
            "model.vocab_size is 100, which is below the 500 of d");
  EXPECT_EQ(Message(RefuseData(spec, "data.train", NotFound("no such file"))),
            "data.train is /d/x: no such file");
}

}  // namespace
}  // namespace troupe
