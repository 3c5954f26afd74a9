/** Debian in a directory, with process 1 and namespaces of its own, but that of the network. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const BOOT = join(import.meta.dirname, 'boot-root.sh')
const SEARCH_PATH = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** Addresses of a server and of PostgreSQL, which a setup uses. */
const PORTS = [3210, 3220, 5432]

/** Returns why no root can be made here, or null. */
export async function missingForRoots(): Promise<string | null> {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'needs root on Linux'
  for (const program of ['debootstrap', 'unshare', 'nsenter']) {
    if (spawnSync('which', [program]).status !== 0) return `${program} is not installed`
  }
  if (cgroupMount() === undefined) return 'the machine has no control groups of version 2'
  for (const port of PORTS) if (await isTaken(port)) return `port ${port} is in use`
  return null
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function cgroupMount(): string | undefined {
  return /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1]
}

/** Writes the smallest system of a release of Debian, with further packages. */
export function createRoot(
  directory: string,
  release: string,
  packages: readonly string[] = [],
): void {
  const include = packages.length === 0 ? [] : [`--include=${packages.join(',')}`]
  const made = spawnSync('debootstrap', ['--variant=minbase', ...include, release, directory], {
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  })
  if (made.status !== 0) throw new Error(`debootstrap failed: ${made.stdout.slice(-2_000)}`)
}

export function copyRoot(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A root whose process 1 runs. */
export class BootedRoot {
  readonly #directory: string
  readonly #cgroup: string
  readonly #child: ChildProcess
  readonly #pid: number

  private constructor(directory: string, cgroup: string, child: ChildProcess, pid: number) {
    this.#directory = directory
    this.#cgroup = cgroup
    this.#child = child
    this.#pid = pid
  }

  /** `init` is the command of process 1. */
  static async boot(directory: string, init: readonly string[]): Promise<BootedRoot> {
    copyFileSync('/etc/resolv.conf', join(directory, 'etc/resolv.conf'))
    const cgroup = join(cgroupMount()!, `svc-setup-${process.pid}-${Date.now()}`)
    mkdirSync(cgroup)
    const namespaces = ['--mount', '--pid', '--cgroup', '--uts', '--ipc', '--fork', '--kill-child']
    const script = 'echo $$ >"$1"; shift; exec unshare "$@"'
    const args = [...namespaces, 'sh', BOOT, directory, ...init]
    const child = spawn('sh', ['-c', script, 'sh', `${cgroup}/cgroup.procs`, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    // The child of unshare is process 1, which is in the root as soon as it has its own mounts.
    for (;;) {
      const children = `/proc/${child.pid}/task/${child.pid}/children`
      const pid = Number(readFileSync(children, 'utf8').trim().split(' ')[0] || 0)
      if (pid > 0 && isInRoot(pid)) return new BootedRoot(directory, cgroup, child, pid)
      if (child.exitCode !== null) throw new Error('process 1 has ended')
      await sleep(50)
    }
  }

  /** Runs a script of the shell inside, as root and without a terminal. */
  run(script: string): Ran {
    const target = ['--target', String(this.#pid)]
    const namespaces = [...target, '--mount', '--pid', '--cgroup', '--uts', '--ipc', '--root']
    const shell = ['env', '-i', 'HOME=/root', `PATH=${SEARCH_PATH}`, '/bin/sh', '-c']
    const { status, stdout, stderr } = spawnSync(
      'setsid',
      ['--wait', 'nsenter', ...namespaces, ...shell, `cd /root\n${script}`],
      { encoding: 'utf8', maxBuffer: 64 << 20, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    return { status, stdout, stderr }
  }

  write(path: string, content: string | Uint8Array): void {
    mkdirSync(join(this.#directory, path, '..'), { recursive: true })
    writeFileSync(join(this.#directory, path), content)
  }

  /** Copies a directory of this machine into the root. */
  copy(from: string, to: string): void {
    cpSync(from, join(this.#directory, to), { recursive: true })
  }

  /** Ends every process inside; the mounts end with them. */
  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    process.kill(this.#pid, 'SIGKILL')
    await ended
    const groups = spawnSync('find', [this.#cgroup, '-depth', '-type', 'd'], { encoding: 'utf8' })
    for (const group of groups.stdout.trim().split('\n')) rmdirSync(group)
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** The last step before process 1 starts is to leave the root of the machine. */
function isInRoot(pid: number): boolean {
  try {
    const arguments_ = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return !arguments_.includes('boot-root.sh') && !arguments_.startsWith('unshare')
  } catch {
    return false
  }
}
