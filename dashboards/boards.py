"""The six boards: what each row and panel shows, and the expression that it evaluates.

The order of the boards and of the training board's rows is that of the questions: does it train,
how well, where does the time go, who is slow, since when.
"""

from grafana_model import (annotation, board, graph, heat, label_variable, number, states, table)

JOB = 'job_name=~"$job_name"'
RATE = "$__rate_interval"

GREEN_RED = [(None, "green"), (1, "red")]
RED_GREEN = [(None, "red"), (1, "green")]
OF_ONE = [(None, "red"), (0.2, "orange"), (0.4, "green")]


def job_variable():
    return label_variable("job_name", "Job", "label_values(troupe_job_step, job_name)")


# The name of each worker by the address of its metrics, which other series have as `instance`.
WORKERS = 'max by (instance, worker) (troupe_build_info{worker!=""})'


def named(expression):
    """The expression, whose series have the label `instance`, with the label `worker` too: people
    know workers by their names."""
    return f"({expression}) * on (instance) group_left (worker) {WORKERS}"


def worker_variable():
    """The menu of workers shows their names; the value of the variable is their addresses."""
    return label_variable("instance", "Worker", f"query_result({WORKERS})",
                          '/worker="(?<text>[^"]+)|instance="(?<value>[^"]+)/g')


def coordinator_variable():
    return label_variable("instance", "Coordinator",
                          "label_values(troupe_measurements_dropped_total, instance)")


def job_annotations():
    recoveries = f"increase(troupe_job_restarts_total{{{JOB}}}[{RATE}]) > 0"
    commits = f"changes(troupe_checkpoint_last_committed_step{{{JOB}}}[{RATE}]) > 0"
    return [annotation("Recovery", "red", recoveries, "{{job_name}} recovered"),
            annotation("Commit", "blue", commits, "{{job_name}} committed a checkpoint")]


def rate(metric, labels=JOB, by="job_name"):
    return f"sum by ({by}) (rate({metric}{{{labels}}}[{RATE}]))"


def quantile(level, histogram, labels=JOB, by="job_name"):
    buckets = rate(f"{histogram}_bucket", labels, f"{by}, le" if by else "le")
    return f"histogram_quantile({level}, {buckets})"


def mean(histogram, labels=JOB, by="job_name"):
    return f"{rate(histogram + '_sum', labels, by)} / {rate(histogram + '_count', labels, by)}"


def hfu():
    return f"{rate('troupe_job_hardware_flops_total')} / {rate('troupe_job_peak_flops_total')}"


def mfu():
    return f"{rate('troupe_job_model_flops_total')} / {rate('troupe_job_peak_flops_total')}"


def _does_it_train():
    return [
        states("State of each job",
               "The state in which each job is, by its colour: green runs or writes a checkpoint, "
               "yellow waits or starts, orange recovers, red has failed, blue has ended.",
               "max by (job_name) ("
               f'2 * troupe_job_state{{{JOB}, state=~"RUNNING|CHECKPOINTING"}} '
               f'or 1 * (troupe_job_state{{{JOB}, state=~"QUEUED|STARTING"}} == 1) '
               f'or 3 * (troupe_job_state{{{JOB}, state="RECOVERING"}} == 1) '
               f'or 4 * (troupe_job_state{{{JOB}, state="FAILED"}} == 1) '
               f'or 5 * (troupe_job_state{{{JOB}, state=~"SUCCEEDED|CANCELLED"}} == 1))',
               "{{job_name}}", height=6,
               steps=[(None, "text"), (1, "yellow"), (2, "green"), (3, "orange"), (4, "red"),
                      (5, "blue")]),
        graph("Step", "The last optimizer step that each job has applied. A fall is a recovery: "
              "the job continues from its newest checkpoint.", "none",
              (f"max by (job_name) (troupe_job_step{{{JOB}}})", "{{job_name}}"), width=6,
              height=6),
        number("Recoveries", "Recoveries of each job within the shown time.", "none",
               f"sum by (job_name) (increase(troupe_job_restarts_total{{{JOB}}}[$__range]))",
               "{{job_name}}", width=6, height=6, decimals=0,
               steps=[(None, "green"), (1, "orange"), (4, "red")]),
        graph("Training loss", "Training loss of the last step, in nats per token.", "none",
              (f"max by (job_name) (troupe_job_loss{{{JOB}}})", "{{job_name}}")),
        graph("Validation loss", "Loss of the last validation, in nats per token.", "none",
              (f"max by (job_name) (troupe_job_validation_loss{{{JOB}}})", "{{job_name}}")),
        graph("Gradient norm", "Norm of the last step's gradient before clipping.", "none",
              (f"max by (job_name) (troupe_job_grad_norm{{{JOB}}})", "{{job_name}}"),
              logarithmic=True),
        graph("Learning rate", "Learning rate of the last step.", "none",
              (f"max by (job_name) (troupe_job_learning_rate{{{JOB}}})", "{{job_name}}"), width=6),
        graph("Skipped steps", "Steps that changed nothing because a value was not finite, per "
              "interval of the graph.", "none",
              (f"sum by (job_name) (increase(troupe_job_skipped_steps_total{{{JOB}}}[{RATE}]))",
               "{{job_name}}"), width=6, bars=True),
    ]


def wall_time(phases, window=RATE):
    """Seconds per second that the jobs spent in phases (a regular expression)."""
    labels = f'{JOB}, phase=~"{phases}"'
    return f"sum by (job_name) (rate(troupe_job_seconds_total{{{labels}}}[{window}]))"


def goodput():
    return f"{wall_time('productive')} / {wall_time('.*')}"


def _how_well():
    return [
        graph("Model FLOPs utilisation of steps",
              "FLOPs that the model's steps require, divided by those that the devices could have "
              "performed within the steps. Absent if the peak of a device is unknown.",
              "percentunit", (mfu(), "{{job_name}}"), minimum=0),
        graph("Hardware FLOPs utilisation of steps",
              "The same with the FLOPs of activation recomputation. The difference is what "
              "recomputation costs.", "percentunit", (hfu(), "{{job_name}}"), minimum=0),
        graph("Goodput", "Fraction of wall time in which the job did steps that it had not done "
              "before. The rest is shown under the question where the time goes.", "percentunit",
              (goodput(), "{{job_name}}"), minimum=0, maximum=1),
        graph("Model FLOPs utilisation over wall time", "That of steps, times goodput: it falls "
              "with every recovery, repeated step and wait.", "percentunit",
              (f"({mfu()}) * on (job_name) ({goodput()})", "{{job_name}}"), minimum=0),
        graph("Tokens per second", "Tokens trained on for each second, repeated steps included.",
              "suffix: tokens/s", (rate("troupe_job_tokens_total"), "{{job_name}}"), minimum=0),
        graph("Model FLOP/s", "FLOPs that the model's steps require, per second.", "flops",
              (rate("troupe_job_model_flops_total"), "{{job_name}}"), minimum=0),
    ]


def exposed(purpose):
    """Seconds per second for which a mean rank was blocked in collectives, by purpose."""
    labels = f'{JOB}, purpose=~"{purpose}"'
    return rate("troupe_job_exposed_communication_seconds_total", labels, "job_name, purpose")


def _where_time_goes():
    ranks = f"on (job_name) group_left () max by (job_name) (troupe_job_ranks{{{JOB}}})"
    return [
        graph("Wall time by phase", "Each second of a job by what it was spent on. Productive and "
              "repeated are steps; the time of a commit that blocked training is apart from them.",
              "percentunit",
              (rate("troupe_job_seconds_total", by="job_name, phase"),
               "{{job_name}} {{phase}}"), stacked=True, minimum=0, maximum=1),
        graph("Blocked in communication", "Fraction of time for which a mean rank's step was "
              "blocked in collectives, by their purpose. What overlaps with compute is not in it.",
              "percentunit", (f"{exposed('.*')} / {ranks}", "{{job_name}} {{purpose}}"),
              stacked=True, minimum=0),
        graph("Overlapped communication", "Fraction of the time of collectives, from issue to "
              "completion, in which steps were not blocked, by purpose.", "percentunit",
              (f"1 - {exposed('.*')} / "
               f"{rate('troupe_job_communication_seconds_total', by='job_name, purpose')}",
               "{{job_name}} {{purpose}}"), minimum=0, maximum=1),
        graph("Waiting for a core", "Fraction of time for which a mean rank could compute but had "
              "no core: other programs use them.", "percentunit",
              (f"{rate('troupe_job_core_wait_seconds_total')} / {ranks}", "{{job_name}}"),
              minimum=0),
        graph("Step time", "Duration of a step: the median, and that of the slowest in a hundred.",
              "s", (quantile(0.5, "troupe_job_step_duration_seconds"), "{{job_name}} median"),
              (quantile(0.99, "troupe_job_step_duration_seconds"), "{{job_name}} 99%"), minimum=0),
        heat("Distribution of step time", "How many steps took how long, in steps per second.", "s",
             rate("troupe_job_step_duration_seconds_bucket", by="le")),
        graph("Waiting for data", "Fraction of time for which a mean rank waited for training "
              "data.", "percentunit", (f"{rate('troupe_job_data_wait_seconds_total')} / {ranks}",
                              "{{job_name}}"), minimum=0),
        graph("Pipeline bubble", "Fraction of the last step that ranks waited for other pipeline "
              "stages: that of the median rank and the largest. Absent without pipeline stages.",
              "percentunit",
              (f"max by (job_name) (troupe_pipeline_median_bubble_ratio{{{JOB}}})",
               "{{job_name}} median"),
              (f"max by (job_name) (troupe_pipeline_bubble_ratio{{{JOB}}})", "{{job_name}} worst"),
              minimum=0, maximum=1),
    ]


def _experts():
    return [
        graph("Dropped expert choices", "Fraction of the routers' choices that were dropped "
              "because the expert was at its capacity. Absent without experts.", "percentunit",
              (f"{rate('troupe_job_router_dropped_total')} / "
               f"{rate('troupe_job_router_routed_total')}", "{{job_name}}"), minimum=0),
        graph("Imbalance of experts", "Choices of the most chosen expert divided by the mean over "
              "experts, for the median rank and for the worst. Absent without experts.", "none",
              (f"max by (job_name) (troupe_job_router_median_imbalance{{{JOB}}})",
               "{{job_name}} median"),
              (f"max by (job_name) (troupe_job_router_imbalance{{{JOB}}})", "{{job_name}} worst"),
              minimum=1),
        heat("Load of each expert", "Choices of each expert per second, over all blocks. Absent "
             "without experts or with more than 64.", "none",
             rate("troupe_job_router_load_total", by="expert"), "{{expert}}", width=24),
    ]


def _shapes():
    return [
        table("Layouts", "The layout, the intended precision and the pipeline schedule with which "
              "each job runs.", "none",
              f"max by (job_name, layout, precision, schedule) (troupe_job_info{{{JOB}}})",
              {"job_name": "Job", "layout": "Layout", "precision": "Precision",
               "schedule": "Schedule", "Value": "Known"}, width=24, height=6),
    ]


def training():
    return board("troupe-training", "Troupe / Training",
                 "Does each job train, how well, and where does its time go?", [job_variable()],
                 [("Does it train?", _does_it_train()), ("How well?", _how_well()),
                  ("Where does the time go?", _where_time_goes()), ("Experts", _experts()),
                  ("What runs?", _shapes())],
                 job_annotations())


def collectives():
    labels = f'{JOB}, instance=~"$instance"'
    by = "operation, axis, scope, purpose"
    name = "{{operation}} over {{axis}}: {{purpose}} {{scope}}"
    host = [
        graph("Time of collectives", "Mean duration of a collective from issue to completion, "
              "which includes waiting for slower ranks.", "s",
              (mean("troupe_collective_duration_seconds", labels, by), name), minimum=0),
        graph("Time in collectives", "Time from issue to completion, per second and summed over "
              "ranks. Collectives overlap with compute and with each other.", "s",
              (rate("troupe_collective_duration_seconds_sum", labels, by), name), stacked=True,
              minimum=0),
        graph("Collectives per second", "Completed collectives per second.", "ops",
              (rate("troupe_collective_duration_seconds_count", labels, by), name), minimum=0),
        graph("Bytes per second", "Size of the largest buffer of each collective, summed over "
              "ranks, per second.", "Bps",
              (rate("troupe_collective_bytes_total", labels, by), name), minimum=0),
        graph("Bus bandwidth by the host", "Minimum traffic of collectives on the link of each "
              "rank, divided by their time from issue to completion: it falls where ranks wait for "
              "each other.", "Bps",
              (f"{rate('troupe_collective_bus_bytes_total', labels, by)} / "
               f"{rate('troupe_collective_duration_seconds_sum', labels, by)}", name), minimum=0),
        heat("Distribution of durations", "How many collectives took how long, in collectives per "
             "second.", "s", rate("troupe_collective_duration_seconds_bucket", labels, "le")),
        table("Slowest collectives", "Duration of the slowest in a hundred, by operation, mesh "
              "axis and purpose, over the shown time.", "s",
              f"topk(20, histogram_quantile(0.99, sum by ({by}, le) (increase("
              f"troupe_collective_duration_seconds_bucket{{{labels}}}[$__range]))))",
              {"operation": "Operation", "axis": "Mesh axis", "scope": "Scope",
               "purpose": "Purpose",
               "Value": "99%"}),
    ]
    seconds = rate("troupe_device_collective_seconds_total", labels, by)
    device = [
        graph("Bus bandwidth", "Minimum traffic of device-side collectives on the link of each "
              "device, divided by the time that devices spent in them.", "Bps",
              (f"{rate('troupe_device_collective_bus_bytes_total', labels, by)} / {seconds}", name),
              minimum=0),
        graph("Time of device collectives", "Mean time that a device spent in a device-side "
              "collective.", "s",
              (f"{seconds} / {rate('troupe_device_collectives_total', labels, by)}", name),
              minimum=0),
        graph("Time in device collectives", "Time that devices spent in device-side collectives, "
              "per second and summed over devices.", "s", (seconds, name), stacked=True,
              minimum=0),
        graph("Bytes of device collectives", "Size of the largest buffer of each device-side "
              "collective, summed over devices, per second.", "Bps",
              (rate("troupe_device_collective_bytes_total", labels, by), name), minimum=0),
    ]
    return board("troupe-collectives", "Troupe / Collectives",
                 "What each collective costs, by operation, mesh axis, scope and purpose.",
                 [job_variable(), worker_variable()],
                 [("Collectives by the host", host), ("Collectives by devices", device)],
                 job_annotations())


def stragglers():
    labels = f'{JOB}, instance=~"$instance"'
    gpu = 'instance=~"$instance"'
    in_collectives = rate("troupe_collective_duration_seconds_sum", labels, "job_name, instance")
    average = f"avg by (job_name) ({in_collectives})"
    in_range = ("sum by (job_name, instance) (increase(troupe_collective_duration_seconds_sum"
                f"{{{labels}}}[$__range]))")
    slow = [
        graph("Time in collectives against the mean",
              "A worker's time in collectives, divided by the mean over the job's workers. Ranks "
              "wait in collectives for the slowest: the worker with the smallest value is the one "
              "that the others wait for.", "none",
              (named(f"{in_collectives} / on (job_name) group_left () {average}"),
               "{{job_name}} {{worker}}"), minimum=0),
        heat("Time in collectives of each worker", "Time that the ranks of each worker spent in "
             "collectives, per second. A pale row is a worker that the others wait for.", "none",
             named(rate("troupe_collective_duration_seconds_sum", labels, "instance")),
             "{{worker}}"),
        table("Workers that others wait for", "The eight workers with the least time in "
              "collectives against the mean of their job, over the shown time.", "percentunit",
              "bottomk(8, max by (job_name, worker) ("
              + named(f"{in_range} / on (job_name) group_left () avg by (job_name) ({in_range})")
              + "))",
              {"job_name": "Job", "worker": "Worker", "Value": "Of the mean"}),
        heat("Busy time of ranks against the median", "Time of a step in which a rank neither "
             "waited for data nor was blocked in communication, divided by the median over ranks: "
             "how many ranks had which ratio, per second. A row far above 1 is a straggler.",
             "none", rate("troupe_job_rank_busy_ratio_bucket", by="le")),
        table("Busiest ranks", "Newest busy time against the median of the job, of the at most "
              "eight busiest ranks of each job.", "percentunit",
              f"max by (job_name, rank) (troupe_job_rank_worst_busy_ratio{{{JOB}}})",
              {"job_name": "Job", "rank": "Rank", "Value": "Of the median"}),
        graph("Blocked time: waiting or moving bytes", "Time of a step for which a mean rank was "
              "blocked in communication: waiting for the rank that came last, which was blocked "
              "least, and the time of that rank, in which bytes moved.", "s",
              (f"max by (job_name) (troupe_job_peer_wait_seconds{{{JOB}}})",
               "{{job_name}} waiting"),
              (f"max by (job_name) (troupe_job_transfer_seconds{{{JOB}}})",
               "{{job_name}} moving"), stacked=True, minimum=0),
        graph("Waiting for data or a core", "Time that ranks waited for training data, and that "
              "they could compute but had no core, per second and summed over ranks.", "s",
              (rate("troupe_job_data_wait_seconds_total"), "{{job_name}} data"),
              (rate("troupe_job_core_wait_seconds_total"), "{{job_name}} core"), minimum=0),
    ]
    why = [
        graph("Reduced clocks", "Fraction of time for which the GPU's clocks were reduced, by "
              "reason. Absent without GPUs.", "percentunit",
              (named(rate("troupe_device_throttled_seconds_total", gpu,
                          "instance, device, reason")),
               "{{worker}} GPU {{device}} {{reason}}"), minimum=0, maximum=1),
        graph("Slower implementations", "Operations that run a slower implementation than "
              "intended, started within the interval of the graph, by kind.", "none",
              (named("sum by (instance, operation) (increase(troupe_kernel_fallbacks_total"
                     f"{{{gpu}}}[{RATE}]))"), "{{worker}} {{operation}}"), bars=True),
        graph("Slowest steps", "Duration of the slowest step in a hundred divided by the median.",
              "none",
              (f"{quantile(0.99, 'troupe_job_step_duration_seconds')} / "
               f"{quantile(0.5, 'troupe_job_step_duration_seconds')}", "{{job_name}}"), minimum=1),
        graph("Devices with errors", "Memory errors of GPUs, per interval of the graph. Absent "
              "without GPUs.", "none",
              (named("sum by (instance, device, kind) (increase(troupe_device_memory_errors_total"
                     f"{{{gpu}}}[{RATE}]))"), "{{worker}} GPU {{device}} {{kind}}"), bars=True),
    ]
    return board("troupe-stragglers", "Troupe / Stragglers",
                 "Which worker do the others wait for, and why is it slow?",
                 [job_variable(), worker_variable()], [("Who is slow?", slow), ("Why?", why)],
                 job_annotations())


def devices():
    gpu = 'instance=~"$instance", gpu=~"$gpu"'
    name = "{{worker}} GPU {{device}}"

    def of_each(metric):
        return named(f"max by (instance, device) ({metric}{{{gpu}}})")

    health = [
        states("Health", "Green: healthy. Orange: degraded. Red: condemned, which means that no "
               "rank is placed on the GPU until a burn-in finds it sound.",
               named("max by (instance, device) ("
                     f'1 * (troupe_device_health{{{gpu}, state="degraded"}} == 1) '
                     f'or 2 * (troupe_device_health{{{gpu}, state="condemned"}} == 1) '
                     f'or 0 * troupe_device_health{{{gpu}, state="healthy"}})'), name,
               steps=[(None, "green"), (1, "orange"), (2, "red")]),
        graph("Age of the newest sample", "Time since the GPU's health was last read. It grows if "
              "the GPU or its driver no longer answers.", "s",
              (named("time() - max by (instance, device) "
                     f"(troupe_device_last_sample_timestamp_seconds{{{gpu}}})"), name), minimum=0),
        graph("Errors reported by the driver", "Errors of the GPU (Xid) per interval of the graph.",
              "none",
              (named("sum by (instance, device, xid) (increase(troupe_device_xid_errors_total"
                     f"{{{gpu}}}[{RATE}]))"), name + " Xid {{xid}}"), bars=True),
        graph("Memory errors", "Corrected and uncorrected memory errors per interval of the graph.",
              "none",
              (named("sum by (instance, device, kind) (increase(troupe_device_memory_errors_total"
                     f"{{{gpu}}}[{RATE}]))"), name + " {{kind}}"), bars=True),
        graph("Replaced rank processes", "Faults after which the rank process on the GPU was "
              "replaced, per interval of the graph.", "none",
              (named("sum by (instance, device) (increase(troupe_device_rank_replacements_total"
                     f"{{{gpu}}}[{RATE}]))"), name), bars=True),
    ]
    load = [
        graph("Utilisation", "Fraction of time in which a kernel ran on the GPU, as the driver "
              "sampled it last. It does not show how well the kernel used the GPU: that is MFU.",
              "percentunit",
              (of_each("troupe_device_utilization_ratio"), name),
              minimum=0, maximum=1),
        graph("Clock", "Clock of the GPU's multiprocessors.", "hertz",
              (of_each("troupe_device_clock_hertz"), name),
              minimum=0),
        graph("Memory", "Memory of the GPU that is allocated, by all processes and the driver.",
              "bytes",
              (of_each("troupe_device_memory_used_bytes"), name),
              minimum=0),
        graph("Temperature", "Temperature of the GPU die.", "celsius",
              (of_each("troupe_device_temperature_celsius"), name)),
        graph("Power", "Power draw of the GPU.", "watt",
              (of_each("troupe_device_power_watts"), name),
              minimum=0),
        graph("Reduced clocks", "Fraction of time for which the GPU's clocks were reduced, by "
              "reason; several may apply at once.", "percentunit",
              (named(rate("troupe_device_throttled_seconds_total", gpu,
                          "instance, device, reason")),
               name + " {{reason}}"), minimum=0, maximum=1),
    ]
    variables = [worker_variable(),
                 label_variable("gpu", "GPU", "label_values(troupe_device_health, gpu)")]
    fleet = [
        table("Devices of each worker",
              "The devices and the level of the CPU's kernels of each worker.", "none",
              'max by (instance, worker, device, kernel_level, versions) '
              '(troupe_build_info{instance=~"$instance", worker!=""})',
              {"worker": "Worker", "instance": "Address", "device": "Devices",
               "kernel_level": "Kernels", "versions": "Libraries", "Value": "Up"}, width=24),
    ]
    return board("troupe-devices", "Troupe / Devices",
                 "The health, the load and the errors of each worker's devices.", variables,
                 [("Fleet", fleet), ("State of GPUs", health), ("Load", load)])


def checkpoints():
    now = [
        number("Age of the newest checkpoint", "Time since the newest commit of each job: a "
               "failure now would lose the work of this time.", "s",
               "time() - max by (job_name) "
               f"(troupe_checkpoint_last_commit_timestamp_seconds{{{JOB}}})", "{{job_name}}",
               width=6, height=5),
        number("Steps since the newest checkpoint", "Steps that a failure now would repeat.",
               "none",
               f"max by (job_name) (troupe_job_step{{{JOB}}}) - max by (job_name) "
               f"(troupe_checkpoint_last_committed_step{{{JOB}}})", "{{job_name}}", width=6,
               height=5, decimals=0),
        number("Interval", "Time between checkpoints that the job asks for. Absent if it counts "
               "steps.", "s",
               f"max by (job_name) (troupe_checkpoint_interval_seconds{{{JOB}}})", "{{job_name}}",
               width=4, height=5),
        number("Interval in steps", "Steps between checkpoints that the job asks for. Absent if it "
               "counts seconds.", "none",
               f"max by (job_name) (troupe_checkpoint_interval_steps{{{JOB}}})", "{{job_name}}",
               width=4, height=5),
        number("Quarantined", "Committed checkpoints that were found damaged, within the shown "
               "time.", "none",
               f"sum by (job_name) (increase(troupe_checkpoint_quarantined_total{{{JOB}}}"
               "[$__range]))", "{{job_name}}", width=4, height=5, decimals=0, steps=GREEN_RED),
    ]
    cost = [
        graph("Blocked training", "Time for which the newest committed checkpoint blocked "
              "training, on the slowest rank.", "s",
              (f"max by (job_name) (troupe_checkpoint_stall_seconds{{{JOB}}})", "{{job_name}}"),
              minimum=0),
        graph("Duration", "Time from the first rank's vote to the commit.", "s",
              (f"max by (job_name) (troupe_checkpoint_duration_seconds{{{JOB}}})", "{{job_name}}"),
              minimum=0),
        graph("Bytes written", "Bytes of committed checkpoints per second.", "Bps",
              (rate("troupe_checkpoint_bytes_total"), "{{job_name}}"), minimum=0),
        graph("Write method", "Shard files by the method that wrote them, per interval of the "
              "graph. Buffered writes are the slowest.", "none",
              ("sum by (job_name, method) (increase(troupe_checkpoint_writes_total"
               f"{{{JOB}}}[{RATE}]))", "{{job_name}} {{method}}"), bars=True),
    ]
    trouble = [
        graph("Aborted and skipped", "Attempts that were aborted, and checkpoints that were due "
              "but skipped, per interval of the graph.", "none",
              (f"sum by (job_name) (increase(troupe_checkpoint_aborts_total{{{JOB}}}[{RATE}]))",
               "{{job_name}} aborted"),
              (f"sum by (job_name) (increase(troupe_checkpoint_skipped_total{{{JOB}}}[{RATE}]))",
               "{{job_name}} skipped"), bars=True),
        graph("Verified", "Checkpoints that were read back from disk, by result, per interval of "
              "the graph.", "none",
              ("sum by (job_name, result) (increase(troupe_checkpoint_verifications_total"
               f"{{{JOB}}}[{RATE}]))", "{{job_name}} {{result}}"), bars=True),
    ]
    return board("troupe-checkpoints", "Troupe / Checkpoints",
                 "How much work a failure would lose, what checkpoints cost, and which failed.",
                 [job_variable()],
                 [("Now", now), ("What they cost", cost), ("What went wrong", trouble)],
                 job_annotations())


def _workers(at):
    return [
        number("Connected workers", "Workers with a session.", "none",
               f"sum(troupe_worker_up{{{at}}})", steps=RED_GREEN),
        number("Lost workers", "Workers that the coordinator knows and that have no session.",
               "none", f"count(troupe_worker_up{{{at}}} == 0) or vector(0)", steps=GREEN_RED),
        number("Insecure", "1 if the coordinator was started with --insecure.", "none",
               f"max(troupe_insecure{{{at}}})", steps=GREEN_RED),
        states("Each worker", "Green while the worker has a session with the coordinator.",
               f"max by (worker) (troupe_worker_up{{{at}}})", "{{worker}}", height=8,
               steps=RED_GREEN),
        graph("Memory of workers", "Resident memory of each worker's daemon and rank processes.",
              "bytes", (f"max by (worker) (troupe_worker_memory_bytes{{{at}}})", "{{worker}}"),
              minimum=0),
    ]


def _jobs_and_devices(at):
    return [
        graph("Jobs by state", "Jobs that the coordinator keeps, by their state.", "none",
              (f"sum by (state) (troupe_jobs{{{at}}})", "{{state}}"), stacked=True, minimum=0),
        graph("Devices", "Devices that are leased to ranks, free or condemned, and those that jobs "
              "in the queue want.", "none",
              (f'sum by (state) (troupe_devices{{{at}, state!="wanted"}})', "{{state}}"),
              (f'sum by (state) (troupe_devices{{{at}, state="wanted"}})', "{{state}}"),
              minimum=0),
        heat("Time in the queue", "How long jobs waited before they started, in jobs per second.",
             "s", rate("troupe_job_queue_wait_seconds_bucket", at, "le")),
        graph("Wait of half of the jobs", "Median of the time that jobs waited in the queue, and "
              "the time of the slowest in ten.", "s",
              (quantile(0.5, "troupe_job_queue_wait_seconds", at, ""), "median"),
              (quantile(0.9, "troupe_job_queue_wait_seconds", at, ""), "90%"), minimum=0),
    ]


def _coordinator(at):
    return [
        graph("Duration of calls", "Duration of the slowest unary call in a hundred, by method.",
              "s", (quantile(0.99, "troupe_rpc_duration_seconds", at, "method"), "{{method}}"),
              minimum=0),
        graph("Calls per second", "Unary calls per second, by method and status.", "ops",
              (rate("troupe_rpc_duration_seconds_count", at, "method, code"),
               "{{method}} {{code}}"), minimum=0),
        graph("Turns of the engine", "Time from the first event of a batch until the effects of "
              "all are performed: the median and the slowest in a hundred.", "s",
              (quantile(0.5, "troupe_engine_turn_seconds", at, ""), "median"),
              (quantile(0.99, "troupe_engine_turn_seconds", at, ""), "99%"), minimum=0),
        graph("Writes to the catalog", "Duration of a synced write: the median and the slowest in "
              "a hundred.", "s",
              (quantile(0.5, "troupe_catalog_write_seconds", at, ""), "median"),
              (quantile(0.99, "troupe_catalog_write_seconds", at, ""), "99%"), minimum=0),
        graph("Size of the catalog", "Sorted tables on disk, changes that are in memory and logs "
              "only, and what compactions have to rewrite.", "bytes",
              (f"sum(troupe_catalog_files_bytes{{{at}}})", "tables"),
              (f"sum(troupe_catalog_memory_bytes{{{at}}})", "changes"),
              (f"sum(troupe_catalog_pending_compaction_bytes{{{at}}})", "to compact"), minimum=0),
        graph("Keys of the catalog", "Estimated number of keys, and failures of flushes and "
              "compactions since the catalog was opened, which should be 0.", "none",
              (f"sum(troupe_catalog_keys{{{at}}})", "keys"),
              (f"sum(troupe_catalog_background_errors{{{at}}})", "failures"), minimum=0),
        graph("Sessions and watchers", "Workers with a session, and streams that watch a running "
              "job.", "none", (f"sum(troupe_sessions{{{at}}})", "sessions"),
              (f"sum(troupe_watchers{{{at}}})", "watchers"), minimum=0),
        graph("Leader", "Number of the coordinator process among all that led the cluster: it "
              "rises with every restart.", "none",
              (f"max(troupe_leader_epoch{{{at}}})", "leader")),
    ]


def _process(at):
    def of_coordinator(expression):
        """The largest value of the coordinators: every process has these metrics."""
        return f"max({expression} and on (instance) troupe_leader_epoch)"

    return [
        graph("Cores", "Cores that the coordinator's threads use.", "none",
              (of_coordinator(rate("process_cpu_seconds_total", at, "instance")), "cores"),
              minimum=0),
        graph("Memory", "Memory of the coordinator's process.", "bytes",
              (of_coordinator(f"process_resident_memory_bytes{{{at}}}"), "resident"),
              (of_coordinator(f"process_virtual_memory_bytes{{{at}}}"), "virtual"), minimum=0),
        graph("File descriptors", "File descriptors that the coordinator has open, and its limit.",
              "none", (of_coordinator(f"process_open_fds{{{at}}}"), "open"),
              (of_coordinator(f"process_max_fds{{{at}}}"), "limit"), minimum=0),
        graph("Age of the process", "Time since the coordinator's process started.", "s",
              (of_coordinator(f"time() - process_start_time_seconds{{{at}}}"), "age"), minimum=0),
    ]


def _overload(at):
    return [
        graph("Refused and dropped", "Messages without authority, refused connections and "
              "measurements that were not recorded, per second.", "ops",
              (rate("troupe_worker_messages_denied_total", at, "kind"), "denied {{kind}}"),
              (f"sum(rate(troupe_connections_refused_total{{{at}}}[{RATE}]))", "connections"),
              (f"sum(rate(troupe_measurements_dropped_total{{{at}}}[{RATE}]))", "measurements"),
              minimum=0),
    ]


def control_plane():
    at = 'instance=~"$instance"'
    return board("troupe-control-plane", "Troupe / Control plane",
                 "The coordinator, its workers and its queue.", [coordinator_variable()],
                 [("Workers", _workers(at)), ("Jobs and devices", _jobs_and_devices(at)),
                  ("Coordinator", _coordinator(at)), ("Process", _process(at)),
                  ("Overload", _overload(at))])


BOARDS = {"training": training, "collectives": collectives, "stragglers": stragglers,
          "devices": devices, "checkpoints": checkpoints, "control-plane": control_plane}
