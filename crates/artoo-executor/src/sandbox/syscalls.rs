//! Which system calls a confined command may make (design §9).
//!
//! Owns two filters. The inner one lists what is allowed; everything else, also what a newer kernel brings, does not
//! exist. The outer one answers for well-known calls with "not permitted", which programs word better. They close what
//! Landlock leaves open: sockets of every kind, modes, owners and times of files, other namespaces, other processes.
//! Must not know paths.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::Confinement;

/// Allowed whatever their arguments. Files are Landlock's matter, other processes its signal scope's.
#[rustfmt::skip]
const ALLOWED: &[c_long] = &[
    // open files
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64,
    libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_lseek, libc::SYS_close,
    libc::SYS_close_range, libc::SYS_dup, libc::SYS_dup3, libc::SYS_fcntl, libc::SYS_flock, libc::SYS_fsync,
    libc::SYS_fdatasync, libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fadvise64, libc::SYS_readahead,
    libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice, libc::SYS_sendfile, libc::SYS_copy_file_range, libc::SYS_memfd_create,
    libc::SYS_pipe2, libc::SYS_eventfd2, libc::SYS_signalfd4, libc::SYS_timerfd_create, libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime, libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_inotify_rm_watch,
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2,
    // names
    libc::SYS_openat, libc::SYS_openat2, libc::SYS_newfstatat, libc::SYS_fstat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs,
    libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_readlinkat, libc::SYS_getdents64, libc::SYS_getcwd, libc::SYS_chdir,
    libc::SYS_fchdir, libc::SYS_umask, libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_symlinkat,
    libc::SYS_linkat, libc::SYS_mknodat, libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_fgetxattr, libc::SYS_listxattr,
    libc::SYS_llistxattr, libc::SYS_flistxattr,
    // memory
    libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_msync, libc::SYS_mincore,
    libc::SYS_brk, libc::SYS_mlock, libc::SYS_munlock, libc::SYS_membarrier,
    // itself and its children
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid, libc::SYS_getpid,
    libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups,
    libc::SYS_getresuid, libc::SYS_getresgid, libc::SYS_setpgid, libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_setsid, libc::SYS_prctl,
    libc::SYS_capget, libc::SYS_seccomp, libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self, libc::SYS_getpriority, libc::SYS_sched_yield, libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam, libc::SYS_sched_getscheduler, libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min,
    libc::SYS_getrusage, libc::SYS_times, libc::SYS_getcpu, libc::SYS_futex, libc::SYS_set_tid_address, libc::SYS_set_robust_list,
    libc::SYS_get_robust_list, libc::SYS_rseq, libc::SYS_pidfd_open,
    // signals and time
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending, libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend, libc::SYS_sigaltstack, libc::SYS_restart_syscall, libc::SYS_nanosleep, libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday, libc::SYS_getitimer, libc::SYS_setitimer,
    libc::SYS_timer_create, libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_delete, libc::SYS_timer_getoverrun,
    // the machine
    libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_getrandom,
    // what can be done with the only sockets there are: connected pairs, and questions to the kernel about the network
    libc::SYS_bind, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_getsockopt, libc::SYS_setsockopt,
    libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_shutdown,
];

/// The same under the older names that only this architecture has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const ALLOWED_OLD: &[c_long] = &[
    libc::SYS_open, libc::SYS_creat, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink, libc::SYS_getdents,
    libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_unlink, libc::SYS_rename, libc::SYS_renameat, libc::SYS_symlink, libc::SYS_link, libc::SYS_mknod,
    libc::SYS_pipe, libc::SYS_dup2, libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd,
    libc::SYS_signalfd, libc::SYS_inotify_init, libc::SYS_fork, libc::SYS_vfork, libc::SYS_getpgrp, libc::SYS_pause, libc::SYS_alarm,
    libc::SYS_time, libc::SYS_arch_prctl, libc::SYS_getrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_OLD: &[c_long] = &[];

/// Answered with "not permitted" instead of "not implemented".
#[rustfmt::skip]
const REFUSED: &[c_long] = &[
    libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_setxattr, libc::SYS_lsetxattr,
    libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr, libc::SYS_truncate,
    libc::SYS_connect, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4, libc::SYS_ptrace,
    libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_pidfd_send_signal, libc::SYS_pidfd_getfd, libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo, libc::SYS_unshare, libc::SYS_setns, libc::SYS_chroot, libc::SYS_pivot_root, libc::SYS_mount,
    libc::SYS_umount2, libc::SYS_reboot, libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_settimeofday, libc::SYS_clock_settime,
    libc::SYS_adjtimex, libc::SYS_clock_adjtime, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_init_module, libc::SYS_finit_module,
    libc::SYS_delete_module, libc::SYS_kexec_load, libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_keyctl, libc::SYS_add_key,
    libc::SYS_request_key, libc::SYS_shmget, libc::SYS_shmctl, libc::SYS_semctl, libc::SYS_msgctl, libc::SYS_mq_open, libc::SYS_mq_unlink,
    libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid, libc::SYS_setresgid, libc::SYS_setgroups,
    libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_quotactl, libc::SYS_acct, libc::SYS_syslog, libc::SYS_capset,
];

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const REFUSED_OLD: &[c_long] = &[
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: &[c_long] = &[];

/// Questions about an open file that change nothing; other orders to a device do not exist.
#[rustfmt::skip]
const QUESTIONS: &[u64] = &[
    0x5401, 0x802c_542a, 0x5413, 0x540f, 0x5429, 0x541b, 0x5421, 0x5450, 0x5451, // TCGETS, TCGETS2, TIOCGWINSZ, TIOCGPGRP, TIOCGSID, FIONREAD, FIONBIO, FIO(N)CLEX
    0x8008_6601, 0x801c_581f, 0xc020_660b, 0x2, 0x8008_1272, 0x1260, 0x1268,    // FS_IOC_GETFLAGS, FSGETXATTR, FIEMAP, FIGETBSZ, BLKGETSIZE64, BLKGETSIZE, BLKSSZGET
];

/// The flags of `clone` that open a namespace.
const NAMESPACES: u64 = 0x7e02_0000;

/// Puts both filters in force for this process and everything that it becomes.
///
/// `cuts_held` says whether Landlock holds the cutting of files, `signals_held` whether it holds signals to others; where
/// it does not, these calls go.
pub fn install(confinement: &Confinement, cuts_held: bool, signals_held: bool) -> Result<(), String> {
    let (allowed, refused) = rules(confinement, cuts_held, signals_held).map_err(|e| format!("seccomp: {e}"))?;
    // Of two answers of one kind the filter that came last gives it.
    filter(
        allowed,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        SeccompAction::Allow,
    )?;
    filter(
        refused,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
    )
}

fn filter(rules: Rules, other: SeccompAction, these: SeccompAction) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp refuses: {error}");
    let architecture = std::env::consts::ARCH
        .try_into()
        .map_err(|e: seccompiler::BackendError| failed(&e))?;
    let filter = SeccompFilter::new(rules, other, these, architecture).map_err(|e| failed(&e))?;
    let program: seccompiler::BpfProgram = filter.try_into().map_err(|e: seccompiler::BackendError| failed(&e))?;
    apply_filter(&program).map_err(|e| failed(&e))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

fn rules(confinement: &Confinement, cuts_held: bool, signals_held: bool) -> Built<(Rules, Rules)> {
    let each = |calls: [&[c_long]; 2]| {
        calls
            .into_iter()
            .flatten()
            .map(|call| (*call, Vec::new()))
            .collect::<Rules>()
    };
    let mut allowed = each([ALLOWED, ALLOWED_OLD]);
    let mut refused = each([REFUSED, REFUSED_OLD]);
    let argument = |at, op, value| SeccompCondition::new(at, Len::Qword, op, value);
    let word = |at, op, value| SeccompCondition::new(at, Len::Dword, op, value);

    let no_namespace = SeccompRule::new(vec![argument(0, Op::MaskedEq(NAMESPACES), 0)?])?;
    allowed.insert(libc::SYS_clone, vec![no_namespace]);
    let questions = QUESTIONS
        .iter()
        .map(|order| SeccompRule::new(vec![word(1, Op::Eq, *order)?]));
    allowed.insert(libc::SYS_ioctl, questions.collect::<Built<_>>()?);
    let own = |at| SeccompRule::new(vec![word(at, Op::Eq, 0)?]);
    allowed.insert(libc::SYS_prlimit64, vec![own(0)?]);
    let own_priority = SeccompRule::new(vec![word(0, Op::Eq, 0)?, word(1, Op::Eq, 0)?])?;
    allowed.insert(libc::SYS_setpriority, vec![own_priority]);

    // Questions to the kernel about links, addresses, routes and sockets; changing them takes a capability that is gone.
    let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
    let diagnosis = u64::from(libc::NETLINK_SOCK_DIAG.unsigned_abs());
    let ask = |protocol| SeccompRule::new(vec![word(0, Op::Eq, netlink)?, word(2, Op::Eq, protocol)?]);
    allowed.insert(libc::SYS_socket, vec![ask(0)?, ask(diagnosis)?]);
    let other_family = SeccompRule::new(vec![word(0, Op::Ne, netlink)?])?;
    let other_protocol = SeccompRule::new(vec![word(2, Op::Ne, 0)?, word(2, Op::Ne, diagnosis)?])?;
    refused.insert(libc::SYS_socket, vec![other_family, other_protocol]);

    // One of a pair of datagram sockets can send to any socket that has a name, connected or not; the other kinds reach their pair only.
    let kind = |kind: i32| SeccompRule::new(vec![word(1, Op::MaskedEq(0xf), u64::from(kind.unsigned_abs()))?]);
    allowed.insert(
        libc::SYS_socketpair,
        vec![kind(libc::SOCK_STREAM)?, kind(libc::SOCK_SEQPACKET)?],
    );
    refused.insert(
        libc::SYS_socketpair,
        vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?],
    );

    // `touch` sets the time of the file that it just made to now; every other time stays.
    let now = SeccompRule::new(vec![argument(1, Op::Eq, 0)?, argument(2, Op::Eq, 0)?])?;
    match confinement {
        Confinement::Write(_) => {
            allowed.insert(libc::SYS_utimensat, vec![now]);
            let named = SeccompRule::new(vec![argument(1, Op::Ne, 0)?])?;
            let earlier = SeccompRule::new(vec![argument(2, Op::Ne, 0)?])?;
            refused.insert(libc::SYS_utimensat, vec![named, earlier]);
        }
        Confinement::Read | Confinement::Allowed => {
            refused.insert(libc::SYS_utimensat, Vec::new());
        }
    }

    let signals = if signals_held { &mut allowed } else { &mut refused };
    for call in [libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill] {
        signals.insert(call, Vec::new());
    }
    if !cuts_held {
        // Cutting needs no right to write there, so the ways of doing it without one go.
        allowed.remove(&libc::SYS_openat2);
        let cut = u64::from(libc::O_TRUNC.unsigned_abs());
        let modes = u64::from(libc::O_ACCMODE.unsigned_abs()) | cut;
        let cuts = |at| SeccompRule::new(vec![word(at, Op::MaskedEq(modes), cut)?]);
        refused.insert(libc::SYS_openat, vec![cuts(2)?]);
        #[cfg(target_arch = "x86_64")]
        refused.insert(libc::SYS_open, vec![cuts(1)?]);
    }
    Ok((allowed, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_refused_without_a_condition() {
        for confinement in [Confinement::Read, Confinement::Write(Vec::new())] {
            for (cuts, signals) in [(true, true), (false, false)] {
                let (allowed, refused) = rules(&confinement, cuts, signals).unwrap();
                for (call, conditions) in &refused {
                    assert!(!conditions.is_empty() || !allowed.contains_key(call), "{call}");
                }
                assert!(!allowed.contains_key(&libc::SYS_connect) && !allowed.contains_key(&libc::SYS_io_uring_setup));
                assert!(!allowed[&libc::SYS_socket].is_empty());
            }
        }
    }
}
