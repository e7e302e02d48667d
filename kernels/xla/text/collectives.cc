// Collectives of a slice (Function), and the module of a slice. A collective has a channel of its
// own, and its groups are numbers of partitions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {
namespace {

// "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>".
std::string Table(const Function::Groups& rows) {
  std::vector<std::string> texts;
  for (const std::vector<int>& row : rows) {
    TROUPE_CHECK(row.size() == rows[0].size(), "groups have different sizes");
    texts.push_back(fmt::format("[{}]", fmt::join(row, ", ")));
  }
  return fmt::format("dense<[{}]> : tensor<{}x{}xi64>", fmt::join(texts, ", "), rows.size(),
                     rows[0].size());
}

std::string GroupsText(const Function::Groups& groups) {
  return "replica_groups = " + Table(groups);
}

// A partition's tensor as it is in the arguments and results of main: at least one dim.
Shape OwnShape(const Tensor& tensor) { return tensor.shape.empty() ? Shape{1} : tensor.shape; }

// Texts of one argument or result of main.
struct Stacked {
  std::string own, all, sharding;  // types, and "<@ranks, [{"r"}, {}]>"
};

Stacked StackedOf(const Tensor& tensor, int partitions) {
  Shape shape = OwnShape(tensor);
  Stacked texts;
  texts.own = TypeText(tensor.element, shape);
  shape[0] *= partitions;
  texts.all = TypeText(tensor.element, shape);
  std::vector<std::string> dims(shape.size(), "{}");
  dims[0] = "{\"r\"}";
  texts.sharding = fmt::format("<@ranks, [{}]>", fmt::join(dims, ", "));
  return texts;
}

}  // namespace

Tensor Function::PartitionId() {
  reads_partition_ = true;
  return {"%partition", Element::kI32, {}};
}

std::string Function::CollectiveAttributes(std::string attributes, bool global_ids) {
  attributes += fmt::format(", channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>",
                            ++channels_);
  if (global_ids) attributes += ", use_global_device_ids";
  return fmt::format("<{{{}}}>", attributes);
}

Tensor Function::AllReduce(std::string_view kind, const Tensor& x, const Groups& groups) {
  return Define(x.element, x.shape,
                fmt::format("\"stablehlo.all_reduce\"({}) {} {} : ({}) -> {}", x.name,
                            CollectiveAttributes(GroupsText(groups), true),
                            ScalarRegion(kind, x.element), TypeText(x), TypeText(x)));
}

Tensor Function::AllGather(const Tensor& x, const Groups& groups) {
  Shape shape = x.shape;
  shape[0] *= static_cast<int64_t>(groups[0].size());
  return Define(
      x.element, shape,
      fmt::format("\"stablehlo.all_gather\"({}) {} : ({}) -> {}", x.name,
                  CollectiveAttributes("all_gather_dim = 0 : i64, " + GroupsText(groups), true),
                  TypeText(x), TypeText(x.element, shape)));
}

// Written as the sum and the cut of a block, as XLA's own partitioner writes it: a TPU's compiler
// makes one transfer of the pair, which moves no more than a reduce-scatter, and combines several.
// It does not combine StableHLO's reduce_scatter.
Tensor Function::ReduceScatter(const Tensor& x, const Groups& groups) {
  const auto ranks = groups[0].size();
  TROUPE_CHECK(x.shape[0] % static_cast<int64_t>(ranks) == 0, "the blocks are not equal");
  const int64_t rows = x.shape[0] / static_cast<int64_t>(ranks);
  std::vector<double> begins(groups.size() * ranks);  // by partition
  for (const std::vector<int>& group : groups) {
    for (size_t i = 0; i < ranks; ++i)
      begins[static_cast<size_t>(group[i])] = static_cast<double>(i) * static_cast<double>(rows);
  }
  const Tensor begin = SliceAt(Vector(Element::kI32, begins), PartitionId(), 1);
  return SliceAt(AllReduce("add", x, groups), Reshape(begin, {}), rows);
}

Tensor Function::AllToAll(const Tensor& x, const Groups& groups) {
  TROUPE_CHECK(x.shape[0] % static_cast<int64_t>(groups[0].size()) == 0,
               "the blocks are not equal");
  const std::string attributes = CollectiveAttributes(
      fmt::format("concat_dimension = 0 : i64, {}, split_count = {} : i64, split_dimension = 0 : "
                  "i64",
                  GroupsText(groups), groups[0].size()),
      false);
  return Define(x.element, x.shape,
                fmt::format("\"stablehlo.all_to_all\"({}) {} : ({}) -> {}", x.name, attributes,
                            TypeText(x), TypeText(x)));
}

Tensor Function::Permute(const Tensor& x, const std::vector<std::pair<int, int>>& pairs) {
  Groups rows;
  for (const auto& [from, to] : pairs) rows.push_back({from, to});
  return Define(x.element, x.shape,
                fmt::format("\"stablehlo.collective_permute\"({}) {} : ({}) -> {}", x.name,
                            CollectiveAttributes("source_target_pairs = " + Table(rows), false),
                            TypeText(x), TypeText(x)));
}

std::string Function::SliceModule(const std::vector<Tensor>& results,
                                  const std::vector<int>& aliases, int partitions) const {
  std::string body;
  if (reads_partition_) {
    body =
        "    %unsigned = stablehlo.partition_id : tensor<ui32>\n"
        "    %partition = stablehlo.convert %unsigned : (tensor<ui32>) -> tensor<i32>\n";
  }
  std::vector<std::string> main, inner, taken, types, in, out, names, own, stacked, main_results;
  for (const Tensor& argument : AllArguments()) {
    const size_t index = main.size();
    const Stacked texts = StackedOf(argument, partitions);
    const std::string alias = AliasText(aliases, index);
    main.push_back(fmt::format("%m{}: {} {{sdy.sharding = #sdy.sharding{}{}}}", index, texts.all,
                               texts.sharding, alias.empty() ? "" : ", " + alias));
    taken.push_back(fmt::format("%m{}", index));
    types.push_back(texts.all);
    in.push_back(texts.sharding);
    const bool is_scalar = argument.shape.empty();
    inner.push_back(fmt::format("{}{}: {}", argument.name, is_scalar ? "_one" : "", texts.own));
    if (!is_scalar) continue;
    body += fmt::format("    {0} = stablehlo.reshape {0}_one : ({1}) -> {2}\n", argument.name,
                        texts.own, TypeText(argument));
  }
  for (const Tensor& result : results) {
    TROUPE_CHECK(!result.shape.empty(), "a result of a slice is a scalar");
    const Stacked texts = StackedOf(result, partitions);
    out.push_back(texts.sharding);
    own.push_back(texts.own);
    stacked.push_back(texts.all);
    main_results.push_back(
        fmt::format("{} {{sdy.sharding = #sdy.sharding{}}}", texts.all, texts.sharding));
    names.push_back(fmt::format("%r#{}", names.size()));
  }
  std::vector<std::string> returned;
  for (const Tensor& result : results) returned.push_back(result.name);
  return fmt::format(
      "module @troupe {{\n  sdy.mesh @ranks = <[\"r\"={}]>\n  func.func public @main({}) -> ({}) "
      "{{\n    %r:{} = sdy.manual_computation({}) in_shardings=[{}] out_shardings=[{}] "
      "manual_axes={{\"r\"}} ({}) {{\n{}{}    sdy.return {} : {}\n    }} : ({}) -> ({})\n    "
      "return {} : {}\n  }}\n}}\n",
      partitions, fmt::join(main, ", "), fmt::join(main_results, ", "), results.size(),
      fmt::join(taken, ", "), fmt::join(in, ", "), fmt::join(out, ", "), fmt::join(inner, ", "),
      body, lines_, fmt::join(returned, ", "), fmt::join(own, ", "), fmt::join(types, ", "),
      fmt::join(stacked, ", "), fmt::join(names, ", "), fmt::join(stacked, ", "));
}

}  // namespace troupe::kernels::xla
