/** A machine for tests of `svc-server setup`: real processes in a directory of its own. */
import {
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseSetupArguments } from '../../src/server/setup/arguments.ts'
import { Machine } from '../../src/server/setup/machine.ts'
import { setUp } from '../../src/server/setup/setup.ts'

const PROGRAMS = join(import.meta.dirname, 'fake-programs.sh')
const EXECUTABLE = '/usr/local/bin/svc-server'

const COMMON = ['env', 'id', 'install', 'mkdir', 'chmod', 'ln', 'rm']

/** The programs that each system has before the setup. */
const SYSTEMS = {
  debian: [...COMMON, 'runuser', 'apt-get', 'pg_lsclusters', 'pg_ctlcluster', 'useradd'],
  fedora: [...COMMON, 'runuser', 'dnf', 'useradd', 'systemctl'],
  alpine: [...COMMON, 'apk', 'adduser', 'addgroup', 'rc-update', 'rc-service'],
  macos: [...COMMON, 'sudo', 'dscl', 'launchctl'],
} as const

export interface MachineFacts {
  readonly system: keyof typeof SYSTEMS
  /** The content of os-release; macOS has none. */
  readonly release?: string
  /** True if systemd runs. */
  readonly hasSystemd?: boolean
}

export interface SetupResult {
  readonly exit: number
  readonly out: string
  readonly err: string
}

export class FakeMachine {
  readonly #work = mkdtempSync(join(tmpdir(), 'svc-setup-'))
  /** Answers of the terminal; null stands for a missing one. */
  answer: boolean | null = null
  /** Present where another program listens at the port of PostgreSQL. */
  listens = false
  isRoot = true
  /** False for a server that never answers. */
  startsServer = true
  executable = EXECUTABLE
  environment: Record<string, string> = {}
  readonly #system: MachineFacts['system']

  constructor({ system, release, hasSystemd = false }: MachineFacts) {
    this.#system = system
    mkdirSync(join(this.#work, 'bin'))
    const script = readFileSync(PROGRAMS, 'utf8').replaceAll('@WORK@', this.#work)
    writeFileSync(join(this.#work, 'fake'), script, { mode: 0o755 })
    for (const name of SYSTEMS[system]) this.#link(join(this.#work, 'bin', name))
    if (hasSystemd) {
      this.#link(join(this.#work, 'bin/systemctl'))
      mkdirSync(this.path('/run/systemd/system'), { recursive: true })
    }
    if (release !== undefined) this.write('/etc/os-release', release)
    if (system === 'macos') {
      mkdirSync(this.path('/Library/LaunchDaemons'), { recursive: true })
      this.addHomebrew('/opt/homebrew')
    }
    this.write(EXECUTABLE, 'the executable')
    const scripts = [
      '/etc/init.d/postgresql',
      '/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh',
    ]
    for (const path of ['/usr/local/bin/svc', ...scripts]) this.#link(this.path(path))
    for (const path of ['/etc/systemd/system', '/etc/init.d']) {
      mkdirSync(this.path(path), { recursive: true })
    }
  }

  #link(path: string): void {
    mkdirSync(dirname(path), { recursive: true })
    if (!existsSync(path)) symlinkSync(join(this.#work, 'fake'), path)
  }

  /** Puts Homebrew of a person at a prefix. */
  addHomebrew(prefix: string, uid = 501): void {
    const path = this.path(`${prefix}/bin/brew`)
    this.#link(path)
    if (process.geteuid?.() === 0) lchownSync(path, uid, uid)
  }

  /** Puts a program at a path. */
  addProgram(path: string): void {
    this.#link(this.path(path))
  }

  removeFile(path: string): void {
    rmSync(this.path(path), { recursive: true })
  }

  path(path: string): string {
    return join(this.#work, 'root', path)
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true })
    writeFileSync(this.path(path), text)
  }

  read(path: string): string {
    return readFileSync(this.path(path), 'utf8')
  }

  exists(path: string): boolean {
    return existsSync(this.path(path))
  }

  mode(path: string): string {
    return (statSync(this.path(path)).mode & 0o7777).toString(8)
  }

  setFlag(name: string, text = ''): void {
    mkdirSync(join(this.#work, 'flags'), { recursive: true })
    writeFileSync(join(this.#work, 'flags', name), `${text}\n`)
  }

  /** Makes the machine one that has these clusters of PostgreSQL, of which one runs. */
  addClusters(...lines: readonly string[]): void {
    this.setFlag('clusters', lines.join('\n'))
    this.setFlag('running-postgresql')
    this.#link(join(this.#work, 'bin/psql'))
  }

  removeFlag(name: string): void {
    rmSync(join(this.#work, 'flags', name), { force: true })
  }

  /** Returns the commands that changed the machine since the last call of this method. */
  takeChanges(): string[] {
    const path = join(this.#work, 'changes')
    if (!existsSync(path)) return []
    const lines = readFileSync(path, 'utf8').trim().split('\n')
    rmSync(path)
    return lines
  }

  /** Returns every file below the root with its content, to be compared with an earlier state. */
  snapshot(): Record<string, string> {
    const root = this.path('/')
    const names = readdirSync(root, { recursive: true, encoding: 'utf8' })
    const files = names.filter((name) => statSync(join(root, name)).isFile())
    return Object.fromEntries(
      files.sort().map((name) => {
        const { mode, ino } = statSync(join(root, name))
        return [name, `${mode.toString(8)} ${ino} ${readFileSync(join(root, name), 'utf8')}`]
      }),
    )
  }

  /** Throws the Fault of the setup, with the outputs as its `result`. */
  async setUp(...args: readonly string[]): Promise<SetupResult> {
    const parsed = parseSetupArguments(args)
    if (parsed === null) throw new Error('the arguments are invalid')
    let [out, err] = ['', '']
    const machine = new Machine({
      environment: this.environment,
      executable: this.executable,
      isRoot: this.isRoot,
      system: this.#system === 'macos' ? 'darwin' : 'linux',
      prefix: join(this.#work, 'root'),
      searchPath: join(this.#work, 'bin'),
      isListening: async () => this.listens,
    })
    const isRunning = () => existsSync(join(this.#work, 'flags/running-svc-server'))
    const exit = await setUp(parsed, {
      machine,
      io: {
        out: (text) => {
          out += text
        },
        err: (text) => {
          err += text
        },
      },
      isServing: async () => this.startsServer && isRunning(),
      ask: (question) => {
        out += question
        return this.answer
      },
      waitMillis: 50,
    }).catch((error) => {
      throw Object.assign(error, { result: { exit: 1, out, err } })
    })
    return { exit, out, err }
  }

  remove(): void {
    rmSync(this.#work, { recursive: true })
  }
}
