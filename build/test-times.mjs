/**
 * `npm run test:times [REPORT] [COUNT]`: prints the slowest test files of a run from the report that
 * `npm test` leaves in dist. Files run beside each other, so that the sum exceeds the time of the
 * run.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { ROOT, say } from './prepare.mjs'

const LISTED = 40

const [path = join(ROOT, 'dist/test-report.json'), count = LISTED] = process.argv.slice(2)
if (existsSync(path)) print(JSON.parse(readFileSync(path, 'utf8')).testResults)
else {
  say(`There is no report ${path}: run npm test first.`)
  process.exitCode = 1
}

function print(results) {
  const files = results.map(({ name, startTime, endTime, assertionResults }) => ({
    name: relative(ROOT, name),
    seconds: (endTime - startTime) / 1000,
    tests: assertionResults.length,
  }))
  files.sort((a, b) => b.seconds - a.seconds)
  for (const { name, seconds, tests } of files.slice(0, Number(count))) {
    say(`${seconds.toFixed(1).padStart(7)} s ${String(tests).padStart(5)} tests  ${name}`)
  }
  const sum = files.reduce((total, { seconds }) => total + seconds, 0)
  const from = Math.min(...results.map(({ startTime }) => startTime))
  const to = Math.max(...results.map(({ endTime }) => endTime))
  say(
    `${files.length} files, ${sum.toFixed(0)} s in sum, ${((to - from) / 1000).toFixed(0)} s in all`,
  )
}
