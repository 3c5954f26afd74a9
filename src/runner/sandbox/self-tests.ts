/**
 * Probes of the sandbox: known ways out of a runner, tried with native calls before any code is
 * loaded. The server does not serve if one of them succeeds.
 */
import { cText, cVector, errno, libc } from '../kernel/libc.ts'
import { PROGRESS_DESCRIPTOR } from '../kernel/progress.ts'
import type { Containment, ProbeResult } from '../protocol/messages.ts'
import { CONTAINED_ENVIRONMENT } from './process-environment.ts'

const O_RDWR = 2
/** Flags of a file without a name, so that a successful escape leaves no file. */
const O_TMPFILE_WRONLY = 0o20200001
const O_DIRECTORY = 0o200000
const AF_UNIX = 1
const AF_INET = 2
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const EACCES = 13
const EPERM = 1
const PROT_READ_WRITE = 3
const MAP_SHARED = 0x01
const MAP_PRIVATE = 0x02
const MAP_ANONYMOUS = 0x20
const MAP_GROWSDOWN = 0x0100
const MAPPED_BYTES = 4096
const PTRACE = process.arch === 'x64' ? 101 : 117
const PTRACE_SEIZE = 0x4206

/** A probe; its attempt returns whether the sandbox stopped it. */
export type Probe = readonly [name: string, attempt: () => boolean]

export function runProbes(probes: readonly Probe[]): ProbeResult[] {
  return probes.map(([name, attempt]) => [name, attempt()])
}

/** Probes while only Landlock is in force: without a filter, and as root. */
export function landlockProbes(version: number, parent: number): Probe[] {
  if (version === 0) return []
  const tcp: Probe[] = version >= 4 ? [['landlock tcp', connectsNowhere]] : []
  return [...fileProbes('landlock', parent), ...tcp, ['landlock exec', executesNothing]]
}

/** Probes while all layers are in force; fewer without a filter. */
export function lateProbes({ seccomp }: Containment, parent: number): Probe[] {
  const environment: Probe = ['environment', hasNoEnvironment]
  return seccomp ? [environment, ...filterProbes(parent)] : [environment]
}

export function filterProbes(parent: number): Probe[] {
  const { kill, socket, syscall } = libc()
  return [
    ...fileProbes('filter', parent),
    ['filter exec', executesNothing],
    ['fork', forksNothing],
    ['signal', () => kill(parent, 0) !== 0],
    ['tcp socket', () => socket(AF_INET, SOCK_STREAM, 0) < 0],
    ['udp socket', () => socket(AF_INET, SOCK_DGRAM, 0) < 0],
    ['unix socket', () => socket(AF_UNIX, SOCK_STREAM, 0) < 0],
    ['ptrace', () => syscall(PTRACE, PTRACE_SEIZE, parent, 0, 0, 0) < 0],
    ...memoryProbes(),
  ]
}

/** Memory that no limit of the kernel counts. */
function memoryProbes(): Probe[] {
  const fails = (flags: number, fd: number) => () =>
    libc().mmap(null, MAPPED_BYTES, PROT_READ_WRITE, flags, fd, 0) < 0
  return [
    ['shared memory', fails(MAP_SHARED | MAP_ANONYMOUS, -1)],
    ['shared file', fails(MAP_SHARED, PROGRESS_DESCRIPTOR)],
    ['growing stack', fails(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1)],
  ]
}

function hasNoEnvironment(): boolean {
  return Object.keys(Bun.env).every((name) => Object.hasOwn(CONTAINED_ENVIRONMENT, name))
}

function fileProbes(layer: string, parent: number): Probe[] {
  const stops = (path: string, flags: number) => () => libc().open(cText(path), flags, 0o600) < 0
  return [
    [`${layer} read`, stops('/etc/passwd', 0)],
    [`${layer} list`, stops('/', O_DIRECTORY)],
    [`${layer} write`, stops('/tmp', O_TMPFILE_WRONLY)],
    [`${layer} environment`, stops(`/proc/${parent}/environ`, 0)],
    [`${layer} memory`, stops(`/proc/${parent}/mem`, O_RDWR)],
  ]
}

/** Nothing listens on port 1, so a connection that is let through fails with another error. */
function connectsNowhere(): boolean {
  const fd = libc().socket(AF_INET, SOCK_STREAM, 0)
  if (fd < 0) return true
  const loopbackPort1 = new Uint8Array([AF_INET, 0, 0, 1, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
  const failed = libc().connect(fd, loopbackPort1, loopbackPort1.length) !== 0
  const reason = errno()
  libc().close(fd)
  return failed && (reason === EACCES || reason === EPERM)
}

/** An exec that succeeds replaces this process, which the server then counts as an escape. */
function executesNothing(): boolean {
  const path = '/bin/true'
  return libc().execve(cText(path), cVector([path]), cVector([])) < 0
}

function forksNothing(): boolean {
  const child = libc().fork()
  if (child === 0) libc()._exit(0)
  return child < 0
}
