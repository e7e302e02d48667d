"""The recording rules and the alerts, as plain dictionaries in Prometheus's format.

A recorded series is named `level:metric:operation`. Each alert names its runbook, a heading of
docs/runbooks.md.
"""

RUNBOOKS = "docs/runbooks.md"


def _record(name, expression):
    return {"record": name, "expr": expression}


def _alert(name, severity, minutes, expression, summary, description):
    return {"alert": "Troupe" + name, "expr": expression, "for": f"{minutes}m",
            "labels": {"severity": severity},
            "annotations": {"summary": summary, "description": description,
                            "runbook_url": f"{RUNBOOKS}#troupe{name.lower()}"}}


def recording_rules():
    flops = "sum by (job_name) (rate(troupe_job_{}_flops_total[5m]))"
    bus = "sum by (operation, axis, scope, purpose) (rate(troupe_device_collective_{}_total[5m]))"
    in_collectives = "rate(troupe_collective_duration_seconds_sum[10m])"
    return [
        _record("job:mfu:ratio_rate5m", f"{flops.format('model')} / {flops.format('peak')}"),
        _record("job:hfu:ratio_rate5m", f"{flops.format('hardware')} / {flops.format('peak')}"),
        _record("job:tokens:rate5m", "sum by (job_name) (rate(troupe_job_tokens_total[5m]))"),
        _record("job:step_duration_seconds:p50_rate5m",
                "histogram_quantile(0.5, sum by (job_name, le) "
                "(rate(troupe_job_step_duration_seconds_bucket[5m])))"),
        _record("job:goodput:ratio_rate1h",
                'sum by (job_name) (rate(troupe_job_seconds_total{phase="productive"}[1h])) / '
                "sum by (job_name) (rate(troupe_job_seconds_total[1h]))"),
        _record("job:wall_mfu:ratio_rate1h",
                f"{flops.format('model')} / {flops.format('peak')} * on (job_name) "
                "job:goodput:ratio_rate1h".replace("[5m]", "[1h]")),
        _record("collective:bus_bandwidth:rate5m",
                f"{bus.format('bus_bytes')} / {bus.format('seconds')}"),
        _record("job_instance:collective_seconds:rate10m",
                f"sum by (job_name, instance) ({in_collectives})"),
    ]


def _in_state(states):
    """Jobs in one of the states (a regular expression)."""
    return f'max by (job_name) (troupe_job_state{{state=~"{states}"}}) == 1'


# While an attempt to save is open, a job that runs is CHECKPOINTING.
RUNS = _in_state("RUNNING|CHECKPOINTING")


def _stale_checkpoint():
    """Jobs whose newest commit is older than twice their interval, or that trained as long without
    one."""
    step, interval = (f"max by (job_name) (troupe_{name})" for name in
                      ("job_step", "checkpoint_interval_steps"))
    committed = "max by (job_name) (troupe_checkpoint_last_committed_step)"
    commit_time = "max by (job_name) (troupe_checkpoint_last_commit_timestamp_seconds)"
    seconds = "max by (job_name) (troupe_checkpoint_interval_seconds)"
    trained = ('sum by (job_name) (increase(troupe_job_seconds_total{phase!~"queued|starting"}'
               "[1d]))")
    return (f"time() - {commit_time} > 2 * {seconds} or {step} - {committed} > 2 * {interval} or "
            f"{trained} > 2 * {seconds} unless on (job_name) {commit_time} or "
            f"{step} > 2 * {interval} unless on (job_name) {committed}")


def _job_alerts():
    return [
        _alert("JobStalled", "critical", 15,
               f"{RUNS} unless on (job_name) (sum by (job_name) "
               "(increase(troupe_job_step_duration_seconds_count[5m])) > 0)",
               "Job {{ $labels.job_name }} applies no steps",
               "The job has its ranks, and for 15 minutes it has applied no step."),
        _alert("CheckpointStale", "warning", 5,
               f"({RUNS}) and on (job_name) ({_stale_checkpoint()})",
               "Job {{ $labels.job_name }} has an old checkpoint",
               "The newest commit is older than twice the interval that the job asks for, or there "
               "is none. A failure now loses the work since then."),
        _alert("CheckpointsFailing", "critical", 0,
               "(sum by (job_name) (increase(troupe_checkpoint_aborts_total[30m])) > 2) unless "
               "on (job_name) (sum by (job_name) (increase(troupe_checkpoint_bytes_total[30m])) "
               "> 0)",
               "Checkpoints of job {{ $labels.job_name }} fail",
               "Three attempts or more were aborted within 30 minutes, and none was committed."),
        _alert("LowMfu", "warning", 30,
               "job:mfu:ratio_rate5m < 0.4 or job:mfu:ratio_rate5m < 0.8 * "
               "avg_over_time(job:mfu:ratio_rate5m[1d])",
               "Job {{ $labels.job_name }} uses {{ $value | humanizePercentage }} of its devices",
               "For 30 minutes, the model FLOPs utilisation of steps was below 40%, or 20% below "
               "the mean of the last day."),
        _alert("NonFinite", "warning", 0,
               "sum by (job_name) (increase(troupe_job_skipped_steps_total[15m])) > 2",
               "Job {{ $labels.job_name }} skips steps",
               "In three steps or more within 15 minutes a value was not finite. They changed "
               "nothing."),
        _alert("RestartLoop", "critical", 0,
               "sum by (job_name) (increase(troupe_job_restarts_total[30m])) > 3",
               "Job {{ $labels.job_name }} recovers again and again",
               "The job recovered more than three times within 30 minutes."),
    ]


def _fleet_alerts():
    mean = "avg by (job_name) (job_instance:collective_seconds:rate10m)"
    return [
        _alert("WorkerDown", "warning", 2, "max by (worker) (troupe_worker_up) == 0",
               "Worker {{ $labels.worker }} has no session",
               "The coordinator knows the worker, and for 2 minutes it had no session."),
        _alert("DeviceCondemned", "warning", 0,
               'max by (instance, device, gpu) (troupe_device_health{state="condemned"}) == 1',
               "GPU {{ $labels.device }} of {{ $labels.instance }} is condemned",
               "No rank is placed on the GPU until a burn-in finds it sound."),
        _alert("Xid", "warning", 0,
               "sum by (instance, device, gpu, xid) (troupe_device_xid_errors_total unless "
               "troupe_device_xid_errors_total offset 10m) > 0 or sum by (instance, device, gpu, "
               "xid) (increase(troupe_device_xid_errors_total[10m])) > 0",
               "GPU {{ $labels.device }} of {{ $labels.instance }} reported Xid {{ $labels.xid }}",
               "The driver reported an error within the last 10 minutes."),
        _alert("Throttled", "warning", 15,
               "max by (instance, device, gpu, reason) (rate(troupe_device_throttled_seconds_total"
               '{reason!~"power_cap|sync_boost"}[10m])) > 0.2',
               "GPU {{ $labels.device }} of {{ $labels.instance }} is throttled: "
               "{{ $labels.reason }}",
               "For 15 minutes, the clocks were reduced for more than 20% of the time."),
        _alert("Straggler", "warning", 15,
               "job_instance:collective_seconds:rate10m / on (job_name) group_left () "
               f"{mean} < 0.5 and on (job_name) {mean} > 0.1",
               "The others wait for {{ $labels.instance }} in job {{ $labels.job_name }}",
               "For 15 minutes, the worker's ranks spent less than half of the mean time in "
               "collectives: the other ranks wait there for it."),
        _alert("KernelFallback", "info", 0,
               "max by (instance, operation) (troupe_kernel_fallbacks_total) > 0",
               "{{ $labels.instance }} runs a slower implementation of {{ $labels.operation }}",
               "Something that the fast implementation needs is missing on the worker."),
        _alert("QueueStuck", "warning", 30, _in_state("QUEUED|RECOVERING"),
               "Job {{ $labels.job_name }} waits for devices",
               "The job has been QUEUED or RECOVERING for 30 minutes."),
        _alert("CatalogSlow", "warning", 10,
               "histogram_quantile(0.99, sum by (instance, le) "
               "(rate(troupe_catalog_write_seconds_bucket[5m]))) > 0.25",
               "The catalog of {{ $labels.instance }} is slow",
               "For 10 minutes, one in a hundred writes to the catalog took longer than 250 ms. "
               "Every event of every job waits for such a write."),
        _alert("Insecure", "warning", 0, "max by (instance) (troupe_insecure) == 1",
               "{{ $labels.instance }} runs with --insecure",
               "Whoever reaches its addresses needs no certificate: the coordinator gives every "
               "caller every role, and nothing is encrypted."),
        _alert("CoordinatorDown", "critical", 1, "absent(troupe_measurements_dropped_total)",
               "No coordinator is scraped",
               "For a minute, Prometheus has had no figures of a coordinator. Running jobs "
               "continue for the time of their tickets."),
    ]


def alerts():
    return _job_alerts() + _fleet_alerts()


def rule_groups():
    return {"groups": [{"name": "troupe-recording", "interval": "30s", "rules": recording_rules()},
                       {"name": "troupe-alerts", "interval": "30s", "rules": alerts()}]}
