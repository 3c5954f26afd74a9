/** Runs the client in the test process, with an environment that the test controls. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { WorkspaceTools } from '../../src/client/development/workspace-tools.ts'
import type { ClientEnvironment } from '../../src/client/environment.ts'
import { runClient } from '../../src/client/main.ts'
import { createFetch } from '../../src/client/network/fetch.ts'
import { pause } from '../../src/client/pauses.ts'
import { sha256 } from '../../src/system/digests.ts'
import { realSystem } from '../../src/system/system.ts'
import { canonicalJson } from '../../src/value/canonical-json.ts'
import {
  digestName,
  encodeArtifact,
  encodePackage,
} from '../../src/value/packages/workspace-package.ts'
import { type FakeServer, INVITATION } from './fake-server.ts'

/** Factor by which pauses between attempts are shorter than on the clock. */
const PAUSE_SPEED = 100

export interface Ran {
  readonly exit: number
  readonly out: string
  readonly err: string
}

export class TestClient implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), 'svc-client-'))
  readonly variables: Record<string, string>
  /** Lines that a user types; null if there is no terminal. */
  typed: string[] | null = null
  stdin = ''
  /** Stdin and stdout of a command with a protocol. */
  readonly pipes = { input: new PassThrough(), output: new PassThrough() }
  /** The tools that the test's commands use. */
  tools: Partial<WorkspaceTools> | null = null
  fetch: ClientEnvironment['fetch'] = createFetch((name) => this.variables[name])
  openBrowser: ClientEnvironment['openBrowser'] = async () => false
  /** No work tree unless a test sets one. */
  git: ClientEnvironment['git'] = async () => null
  program: ClientEnvironment['program'] = { path: '/nowhere/svc', userId: null }
  /** Called with every text that is written to stderr, while the command runs. */
  onError: (text: string) => void = () => {}
  /** Called with every text that is written to stdout, while the command runs. */
  onOutput: (text: string) => void = () => {}
  interrupt: () => void = () => {}
  /** Milliseconds of all pauses between attempts, as the client knows them. */
  pausedMillis = 0

  constructor() {
    this.variables = {
      HOME: this.home,
      SERVICE_CONFIG_HOME: join(this.home, 'config'),
      SVC_ALLOW_LOOPBACK_HTTP: 'true',
      SVC_CODE: INVITATION,
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true })
  }

  get credentials(): string {
    return join(this.home, 'config', 'credentials-v1.json')
  }

  /** A directory that `linked` links to the server. */
  get root(): string {
    return join(this.home, 'root')
  }

  async run(...argv: string[]): Promise<Ran> {
    const [out, err]: [string[], string[]] = [[], []]
    const environment = this.environment({}, out, err)
    const { tools } = this
    const exit = await runClient(argv, environment, tools && (async () => tools as WorkspaceTools))
    return { exit, out: out.join(''), err: err.join('') }
  }

  /** Returns what a command runs in, with these parts in place of its own. */
  environment(
    parts: Partial<ClientEnvironment>,
    out: string[] = [],
    err: string[] = [],
  ): ClientEnvironment {
    const isTTY = this.typed !== null
    const system = realSystem()
    return {
      system: { ...system, monotonicMillis: () => system.monotonicMillis() + this.pausedMillis },
      platform: process.platform,
      homeDirectory: this.home,
      workingDirectory: this.home,
      program: this.program,
      stdin: {
        isTTY,
        readAll: async (most) => {
          const bytes = Buffer.from(this.stdin)
          return bytes.length > most ? null : bytes
        },
        readLine: async () => this.typed?.shift() ?? null,
      },
      stdout: {
        isTTY: false,
        write: async (text) => {
          out.push(text)
          this.onOutput(text)
        },
      },
      stderr: {
        isTTY,
        write: async (text) => {
          err.push(text)
          this.onError(text)
        },
      },
      pipes: () => this.pipes,
      fetch: (url, init) => this.fetch(url, init),
      variable: (name) => this.variables[name],
      git: (directory, parameters) => this.git(directory, parameters),
      openBrowser: (url) => this.openBrowser(url),
      pause: async (millis, signal) => {
        await pause(millis / PAUSE_SPEED, signal)
        this.pausedMillis += millis
      },
      onInterrupt: (listener) => {
        this.interrupt = listener
        return () => {}
      },
      ...parts,
    }
  }

  login(server: FakeServer): Promise<Ran> {
    return this.run('login', '--url', server.origin, '--code-env', 'SVC_CODE')
  }

  async linked(server: FakeServer): Promise<this> {
    const { projectId, environmentId } = server
    const link = ['link', '--root', this.root, '--project-id', projectId]
    const runs = [
      await this.login(server),
      await this.run(...link, '--environment-id', environmentId),
    ]
    const failed = runs.find(({ exit }) => exit !== 0)
    if (failed !== undefined) throw new TypeError(failed.err)
    return this
  }
}

/** Creates a package with one Function whose code is `source`. */
export function packageFrame(projectId: string, source = 'one'): Uint8Array {
  const artifact = encodeArtifact({ source, sourceMap: null }, sha256)
  const manifest = canonicalJson({
    version: 1,
    projectId,
    workspace: 'default',
    artifact: { digest: digestName(sha256(artifact)), bytes: artifact.length },
    functions: [],
    tables: [],
  })
  return encodePackage({ manifest, artifact }, sha256)
}
