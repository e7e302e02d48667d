// Requests that tests of a listening coordinator send, as a client and as a worker.
#ifndef TROUPE_COORDINATOR_TEST_REQUESTS_H_
#define TROUPE_COORDINATOR_TEST_REQUESTS_H_

#include <cstdint>
#include <string>

#include "troupe/v1/job.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Returns a job that the planner accepts. Its data does not exist.
inline v1::JobSpec PlannableJob(const std::string& name) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_model()->set_preset("tiny");
  spec.mutable_data()->set_train("/nowhere/data");
  spec.mutable_training()->set_steps(3);
  spec.mutable_training()->set_sequence_length(64);
  spec.mutable_training()->set_global_batch_size(2);
  spec.mutable_checkpoint()->set_folder("");
  return spec;
}

// Returns the first message of a worker with one device.
inline v1::WorkerMessage HelloOf(const std::string& name, int protocol_version = 2) {
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(protocol_version);
  hello.set_name(name);
  hello.set_incarnation(1);
  hello.set_host("host");
  v1::Device& device = *hello.add_devices();
  device.mutable_kind()->set_kind("cpu");
  device.mutable_kind()->set_model("test");
  device.set_cores(1);
  device.set_memory_bytes(int64_t{1} << 34);
  device.set_peak_flops_float32(1e12);
  return message;
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TEST_REQUESTS_H_
