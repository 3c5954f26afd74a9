/** Runs the measurement of promotions under load in a process of its own. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Plan, Report } from './plan.ts'

const ROOT = join(import.meta.dirname, '../..')
const SCRIPT = 'bench/promotions/under-load.ts'

/** Rejects if the process fails. Failures of the load are in the report. */
export async function promoteUnderLoad(plan: Plan): Promise<Report> {
  const child = spawn(process.execPath, [join(ROOT, SCRIPT)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  child.stdin.end(JSON.stringify(plan))
  const status = await ended
  if (status !== 0) throw new Error(`the load ended with ${status}`)
  return JSON.parse(printed) as Report
}
