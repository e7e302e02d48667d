#include <algorithm>
#include <vector>

#include "kernels/backend/op_sequence.h"
#include "kernels/exchange/row_exchange.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status ReduceScatter(const Operation& operation) {
  const auto& attributes = operation.attributes<model::ReduceScatterAttributes>();
  const model::Value& whole = operation.Input(0);
  std::vector<double> data(operation.inputs[0], operation.inputs[0] + whole.elements());
  if (operation.communicator == nullptr) {
    std::copy(data.begin(), data.end(), operation.outputs[0]);
    return OkStatus();
  }
  return operation.communicator->ReduceScatter(
      data.data(), operation.outputs[0],
      BlockElements(whole, attributes.cut, operation.communicator->size()), SumFloat64(),
      attributes.purpose);
}

Status AllGather(const Operation& operation) {
  const auto& attributes = operation.attributes<model::AllGatherAttributes>();
  const model::Value& whole = operation.Output(0);
  const std::vector<double> block(operation.inputs[0],
                                  operation.inputs[0] + operation.Input(0).elements());
  if (operation.communicator == nullptr) {
    std::copy(block.begin(), block.end(), operation.outputs[0]);
    return OkStatus();
  }
  std::vector<size_t> bytes = BlockElements(whole, attributes.cut, operation.communicator->size());
  for (size_t& count : bytes) count *= sizeof(double);
  return operation.communicator->AllGather(block.data(), operation.outputs[0], bytes,
                                           attributes.purpose);
}

Status ExchangeHeads(const Operation& operation) {
  const RowExchange exchange(operation.program, operation.op, sizeof(double));
  std::vector<char> send(exchange.bytes()), receive(exchange.bytes());
  return exchange.Run(reinterpret_cast<const char*>(operation.inputs[0]),
                      reinterpret_cast<char*>(operation.outputs[0]), send.data(), receive.data(),
                      operation.communicator);
}

}  // namespace troupe::kernels::reference
