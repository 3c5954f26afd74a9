/**
 * podman with storage and networks of its own, and its service for programs that speak to docker.
 * The health checks of containers are timers of systemd, which a machine of tests need not have, so
 * a loop runs them.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A limit above that of this process would need more rights than it may have. */
export const LIMITS = ['nofile=4096:4096', 'nproc=4096:4096']

export class Podman {
  readonly #command: readonly string[]
  readonly #work: string
  readonly #service: ChildProcess
  #isStopped = false

  private constructor(work: string) {
    this.#work = work
    writeFileSync(
      join(work, 'containers.conf'),
      [
        '[containers]',
        `default_ulimits = ${JSON.stringify(LIMITS)}`,
        '[network]',
        'network_backend = "netavark"',
        `network_config_dir = "${join(work, 'networks')}"`,
        '',
      ].join('\n'),
    )
    mkdirSync(join(work, 'networks'))
    const storage = ['--root', join(work, 'storage'), '--runroot', join(work, 'run')]
    const runtime = ['--runtime', '/usr/sbin/runc', '--cgroup-manager', 'cgroupfs']
    this.#command = ['podman', ...storage, ...runtime]
    const [file = '', ...args] = [...this.#command, 'system', 'service', '--time=0', this.address]
    this.#service = spawn(file, args, { env: this.#environment(), stdio: 'ignore' })
  }

  /** Starts the service, which keeps everything below `work`. */
  static async start(work: string): Promise<Podman> {
    const podman = new Podman(work)
    while (!existsSync(podman.#socket())) {
      if (podman.#service.exitCode !== null) throw new Error('the service of podman has ended')
      await sleep(50)
    }
    void podman.#checkHealth()
    return podman
  }

  /** The address of the service, as DOCKER_HOST names it. */
  get address(): string {
    return `unix://${this.#socket()}`
  }

  run(...args: readonly string[]): Ran {
    const [file = '', ...all] = [...this.#command, ...args]
    return spawnSync(file, all, {
      encoding: 'utf8',
      env: this.#environment(),
      maxBuffer: 64 << 20,
    })
  }

  succeed(...args: readonly string[]): string {
    const { status, stdout, stderr } = this.run(...args)
    if (status !== 0) throw new Error(`podman ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }

  /** Removes every container, volume, network and image, and ends the service. */
  stop(): void {
    this.#isStopped = true
    this.run('rm', '-af', '-t', '0')
    for (const kind of ['volume', 'network']) this.run(kind, 'prune', '-f')
    this.run('rmi', '-af')
    this.#service.kill('SIGKILL')
  }

  #socket(): string {
    return join(this.#work, 'podman.sock')
  }

  #environment() {
    return {
      PATH: process.env.PATH,
      HOME: this.#work,
      CONTAINERS_CONF: join(this.#work, 'containers.conf'),
    }
  }

  async #checkHealth(): Promise<void> {
    while (!this.#isStopped) {
      const running = await this.#output('ps', '-q', '--filter', 'status=running')
      for (const id of running.split('\n').filter((line) => line !== '')) {
        await this.#output('healthcheck', 'run', id)
      }
      await sleep(250)
    }
  }

  #output(...args: readonly string[]): Promise<string> {
    const [file = '', ...all] = [...this.#command, ...args]
    return new Promise((resolve) => {
      const child = spawn(file, all, {
        env: this.#environment(),
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      let text = ''
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      child.once('error', () => resolve(''))
      child.once('close', () => resolve(text))
    })
  }
}
