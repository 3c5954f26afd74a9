/** Runs `svc metrics --listen` and a Prometheus that collects from it with the shipped file. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../testing/servers/ports.ts'
import { type Supervised, superviseProcess } from '../../testing/servers/supervisor.ts'
import { argv } from '../argv.ts'
import { CLIENT, type Installation } from '../harness.ts'

const PROMETHEUS = '/usr/bin/prometheus'
/** Checks texts of metrics; part of the same package. */
export const PROMTOOL = '/usr/bin/promtool'
/** The reason why the tests are skipped; null if Prometheus is installed. */
export const MISSING = existsSync(PROMETHEUS) ? null : 'needs the Debian package prometheus'
const CONFIGURATION = join(import.meta.dirname, '../../dist-config/prometheus.yml')
const WAIT_MS_MAX = 60_000
const POLL_MS = 50

export interface Exporter {
  readonly process: Supervised
  /** host:port of the metrics. */
  readonly address: string
}

/** Starts the exporter; resolves once its address is open. */
export async function startExporter(installation: Installation): Promise<Exporter> {
  const child = superviseProcess(
    argv`${CLIENT} metrics --remote --root ${installation.productRoot} --listen 127.0.0.1:0 --json`,
    {
      signal: 'TERM',
      directory: installation.directory,
      environment: installation.clientEnvironment,
    },
  )
  const output = await new Promise<string>((resolve, reject) => {
    let [text, errors] = ['', '']
    child.stderr.on('data', (chunk: string) => {
      errors += chunk
    })
    child.stdout.on('data', (chunk: string) => {
      text += chunk
      if (text.trimEnd().endsWith('}')) resolve(text)
    })
    void child.ended.then((status) => reject(new Error(`the exporter ended: ${status} ${errors}`)))
  })
  return { process: child, address: new URL(JSON.parse(output).url).host }
}

export interface Prometheus {
  /** Returns the value of an expression, once it has one and `accept` is true for it. */
  value(expression: string, accept?: (value: number) => boolean): Promise<number>
  stop(): Promise<void>
}

/** Starts Prometheus with the shipped configuration, in which only address and interval differ. */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-prometheus-'))
  const configuration = readFileSync(CONFIGURATION, 'utf8')
    .replace("'127.0.0.1:9464'", `'${target}'`)
    .replace('scrape_interval: 15s', 'scrape_interval: 200ms')
  const file = join(directory, 'prometheus.yml')
  writeFileSync(file, configuration)
  const address = `127.0.0.1:${await freePort()}`
  const process = superviseProcess(
    [
      PROMETHEUS,
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { signal: 'TERM', directory, environment: { HOME: directory } },
  )
  let errors = ''
  process.stderr.on('data', (text: string) => {
    errors += text
  })
  return {
    async value(expression, accept = () => true) {
      const url = `http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`
      const deadline = Date.now() + WAIT_MS_MAX
      while (Date.now() < deadline) {
        const value = await query(url)
        if (value !== null && accept(value)) return value
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
      throw new Error(`Prometheus has no such value of ${expression}:\n${errors}`)
    },
    stop: async () => {
      await process.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Returns null if Prometheus does not answer, or has no sample. */
async function query(url: string): Promise<number | null> {
  try {
    const { data } = (await (await fetch(url)).json()) as {
      readonly data: { readonly result: readonly { readonly value: [number, string] }[] }
    }
    const [sample] = data.result
    return sample === undefined ? null : Number(sample.value[1])
  } catch {
    return null
  }
}
