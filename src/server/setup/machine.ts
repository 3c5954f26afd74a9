/** The machine that is set up: its programs, files and accounts. */
import { spawn } from 'node:child_process'
import { accessSync, chmodSync, chownSync, constants, lstatSync, type Stats } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { FileFailure, readSecretFile, writeFileAtomic } from '../../system/files.ts'
import { unsupported } from './faults.ts'

export interface CommandResult {
  /** Exit code; 127 if the program is missing, null if it did not end in time. */
  readonly status: number | null
  /** The end of both outputs, in the order in which they were written. */
  readonly output: string
  /** The end of the standard output. */
  readonly answer: string
}

/** A file that the setup writes and that belongs to root. */
export interface PlannedFile {
  readonly path: string
  readonly mode: number
  /** User whose primary group the file has; null for the group of root. */
  readonly group: string | null
  readonly content: () => string
  /** True for content that is never printed. */
  readonly isSecret: boolean
  /** True if an existing file keeps its content and gets only its owner and mode. */
  readonly keepsContent: boolean
}

export interface FileState {
  readonly isDirectory: boolean
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

export interface MachineOptions {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Path of the executable that the service runs. */
  readonly executable: string
  readonly isRoot: boolean
  /** The operating system; that of this process by default. */
  readonly system?: NodeJS.Platform
  /** Directory that stands for the root of the file system; tests have one of their own. */
  readonly prefix?: string
  /** Directories of programs in place of those of this machine. */
  readonly searchPath?: string
  /** Tells whether something listens at a port of this machine. */
  readonly isListening?: (port: number) => Promise<boolean>
}

/** Installing packages over a slow network. */
const COMMAND_MILLIS_MAX = 20 * 60_000
const OUTPUT_CHARACTERS_MAX = 64 * 1024
/** Time after the end of a command within which the rest of its output is read. */
const OUTPUT_MILLIS_MAX = 2_000
const CONNECT_MILLIS_MAX = 5_000
const FILE_BYTES_MAX = 256 * 1024
/** Variables by which package managers reach their servers. */
const KEPT_VARIABLES = /^(?:TERM|TMPDIR|(?:https?|no|ftp|all)_proxy)$/i
/** Root and its group, except in tests. */
const [USER_ID, GROUP_ID] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0]
const SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export class Machine {
  readonly executable: string
  readonly isRoot: boolean
  readonly system: NodeJS.Platform
  /** The person who became root with sudo; null for root itself. */
  readonly invokedBy: string | null
  readonly isListening: (port: number) => Promise<boolean>
  readonly #prefix: string
  readonly #environment: Readonly<Record<string, string>>

  constructor(options: MachineOptions) {
    const { environment, executable, isRoot, prefix = '', searchPath } = options
    this.executable = executable
    this.isRoot = isRoot
    this.system = options.system ?? process.platform
    this.invokedBy = environment.SUDO_USER ?? null
    this.isListening = options.isListening ?? acceptsConnections
    this.#prefix = prefix
    this.#environment = childEnvironment(environment, searchPath)
  }

  /** Runs a program without a shell and without standard input, in the root directory. */
  run(argv: readonly string[]): Promise<CommandResult> {
    const [program = '', ...args] = argv
    return new Promise((resolve) => {
      let [output, answer] = ['', '']
      const path = program.startsWith('/') ? this.#path(program) : program
      const child = spawn(path, args, {
        cwd: '/',
        env: this.#environment,
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: COMMAND_MILLIS_MAX,
        killSignal: 'SIGKILL',
      })
      const end = (text: string): string => text.slice(-OUTPUT_CHARACTERS_MAX)
      child.stdout.on('data', (bytes: Buffer) => {
        answer = end(answer + bytes.toString('utf8'))
        output = end(output + bytes.toString('utf8'))
      })
      child.stderr.on('data', (bytes: Buffer) => {
        output = end(output + bytes.toString('utf8'))
      })
      child.on('error', () => resolve({ status: 127, output, answer }))
      child.on('close', (status) => resolve({ status, output, answer }))
      // A daemon that the command started may keep its outputs open.
      child.on('exit', (status) => {
        setTimeout(() => resolve({ status, output, answer }), OUTPUT_MILLIS_MAX).unref()
      })
    })
  }

  /** Returns what a program prints that only reads, or null if it fails or is missing. */
  async ask(argv: readonly string[]): Promise<string | null> {
    const { status, answer } = await this.run(argv)
    return status === 0 ? answer.trim() : null
  }

  hasProgram(name: string): boolean {
    return this.#environment.PATH!.split(':').some((directory) => {
      try {
        accessSync(join(directory, name), constants.X_OK)
        return true
      } catch {
        return false
      }
    })
  }

  /**
   * Returns null if nothing has this path. A symbolic link is not followed. Throws
   * SERVER_SETUP_UNSUPPORTED where this user may not see it.
   */
  state(path: string): FileState | null {
    let stats: Stats | undefined
    try {
      stats = lstatSync(this.#path(path), { throwIfNoEntry: false })
    } catch (error) {
      throw unsupported(`${path} cannot be read: ${systemReason(error)}. ${this.#remedy()}`)
    }
    if (stats === undefined) return null
    const { mode, uid, gid } = stats
    return { isDirectory: stats.isDirectory(), mode: mode & 0o7777, uid, gid }
  }

  /** Returns null for a file that does not exist. Throws SERVER_SETUP_UNSUPPORTED. */
  read(path: string): string | null {
    try {
      const bytes = readSecretFile(this.#path(path), { bytesMax: FILE_BYTES_MAX })
      return new TextDecoder().decode(bytes)
    } catch (error) {
      if (!(error instanceof FileFailure)) throw error
      if (error.reason === 'missing') return null
      throw unsupported(`${path} cannot be read: expected ${error.message}. ${this.#remedy()}`)
    }
  }

  /** Returns whether the file has the content, the owner and the mode that are planned for it. */
  async isWritten({ path, mode, group, content, keepsContent }: PlannedFile): Promise<boolean> {
    const state = this.state(path)
    if (state === null || state.mode !== mode) return false
    if (!this.isRoots(state)) return false
    if (group !== null && state.gid !== (await this.groupId(group))) return false
    return keepsContent || this.read(path) === content()
  }

  /** Writes a file atomically. Its directory must belong to root. Throws FileFailure. */
  async write({ path, mode, group, content, keepsContent }: PlannedFile): Promise<void> {
    const at = this.#path(path)
    const gid = group === null ? GROUP_ID : await this.groupId(group)
    if (gid === null) throw new FileFailure('failed')
    if (!keepsContent || this.read(path) === null) {
      // The file gets its group while no group can read it.
      writeFileAtomic(at, content(), { mode: 0o600 })
    }
    chownSync(at, USER_ID, gid)
    chmodSync(at, mode)
  }

  /** Tells whether root is the owner. */
  isRoots({ uid }: FileState): boolean {
    return uid === USER_ID
  }

  #remedy(): string {
    return this.isRoot ? 'Check its type and its owner' : 'Run the same command with sudo'
  }

  async userId(user: string): Promise<number | null> {
    return parseId(await this.ask(['id', '-u', user]))
  }

  /** Returns the primary group of a user. */
  async groupId(user: string): Promise<number | null> {
    return parseId(await this.ask(['id', '-g', user]))
  }

  #path(path: string): string {
    return this.#prefix + path
  }
}

/** Settings and secrets of a server have no place in the processes that the setup starts. */
function childEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  // The path of a person who became root may lack the directories of the administrator.
  searchPath: string = `${environment.PATH ?? '/usr/bin'}:${SEARCH_PATH}`,
): Record<string, string> {
  const kept: Record<string, string> = { PATH: searchPath, HOME: '/', LC_ALL: 'C' }
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && KEPT_VARIABLES.test(name)) kept[name] = value
  }
  return kept
}

function systemReason(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}

function parseId(text: string | null): number | null {
  return text !== null && /^[0-9]{1,10}$/.test(text) ? Number(text) : null
}

function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: CONNECT_MILLIS_MAX })
    const end = (accepts: boolean) => () => {
      socket.destroy()
      resolve(accepts)
    }
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(true))
  })
}
