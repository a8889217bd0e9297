"""Jobs side by side: who holds a folder, and what is left when the one who started them is killed."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from smmd_vlm.processes import Job, JobFailed, alone_in, run_jobs, visible_gpus

# Starts one job that sleeps for `seconds` (timeit is a module that runs what it is told), holding the folder's lock.
STUDY = """
import sys
from pathlib import Path
from smmd_vlm.processes import Job, alone_in, run_jobs
folder, seconds = Path(sys.argv[1]), sys.argv[2]
with alone_in(folder) as lock:
    sleep = ["-n1", "-r1", f"import time; time.sleep({seconds}); open({str(folder / 'ended')!r}, 'w')"]
    run_jobs({"sleep": Job([("timeit", sleep)], folder)}, folder / "logs", steps=1, lock=lock)
"""


@pytest.fixture
def started(tmp_path):
    """started(seconds) -> the process of a study whose one job runs."""

    def start(seconds):
        study = subprocess.Popen([sys.executable, "-c", STUDY, str(tmp_path), str(seconds)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not psutil.Process(study.pid).children() and time.monotonic() < deadline:
            time.sleep(0.01)
        return study

    return start


def test_runs_that_a_killed_study_left_behind_are_waited_for(tmp_path, started, capsys):
    study = started(1.5)
    os.kill(study.pid, signal.SIGKILL)
    study.wait()
    assert not (tmp_path / "ended").exists()
    with alone_in(tmp_path):
        assert (tmp_path / "ended").exists()
    assert "is in use, by another call or by runs that a killed one left behind; waiting" in capsys.readouterr().out


def test_sigterm_ends_the_jobs_too(tmp_path, started):
    study = started(60)
    jobs = psutil.Process(study.pid).children()
    study.terminate()
    assert study.wait(timeout=20) == 128 + signal.SIGTERM
    assert jobs and not any(job.is_running() for job in jobs)


def test_a_free_folder_is_not_waited_for(tmp_path, capsys):
    for _ in range(2):
        with alone_in(tmp_path):
            pass
    assert capsys.readouterr().out == ""


def test_the_first_job_that_fails_ends_the_others_and_shows_its_log(tmp_path):
    jobs = {
        "slow": Job([("timeit", ["-n1", "-r1", "import time; time.sleep(60)"])], tmp_path),
        "bad": Job([("timeit", ["-n1", "-r1", "raise ValueError('the reason')"])], tmp_path),
    }
    start = time.monotonic()
    with pytest.raises(JobFailed, match=r"bad ended with exit code 1:(?s:.*)the reason"):
        run_jobs(jobs, tmp_path / "logs", steps=1, parallel=2)
    assert time.monotonic() - start < 30


def seen(folder, names, **options):
    """What each of some jobs that take a moment saw of the environment."""
    write = "import os, time; time.sleep(0.5); open({!r}, 'w').write(' '.join(os.environ.get(k, '-') for k in ('CUDA_VISIBLE_DEVICES', 'OMP_NUM_THREADS')))"
    jobs = {name: Job([("timeit", ["-n1", "-r1", write.format(str(folder / name))])], folder) for name in names}
    run_jobs(jobs, folder / "logs", steps=1, **options)
    return [(folder / name).read_text() for name in names]


def test_each_job_sees_one_gpu_and_its_share_of_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert sorted(seen(tmp_path, "abcd", gpus=["3", "GPU-5"])) == ["3 4", "3 4", "GPU-5 4", "GPU-5 4"]
    assert sorted(seen(tmp_path, "abcd", gpus=["0", "1"], parallel=4)) == ["0 2", "0 2", "1 2", "1 2"]
    assert seen(tmp_path, "ab") == ["- 1", "- 1"]


@pytest.mark.parametrize(("named", "found"), [(None, ["0", "1"]), ("2, 7", ["2", "7"]), ("", []), ("5", ["5"])])
def test_the_gpus_are_those_that_the_user_left_visible(monkeypatch, named, found):
    monkeypatch.setattr("torch.cuda.device_count", lambda: len(found))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert visible_gpus() == found
