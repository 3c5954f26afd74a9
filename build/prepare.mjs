/**
 * Prepares a fresh clone, with nothing but Node: installs the packages of the lock file and builds
 * the executables if they differ from the source. It reports each step and repeats none.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
export const BUN = join(ROOT, 'node_modules/bun/bin/bun.exe')
const MARK = join(ROOT, 'dist/.built-from')
const NODE_MAJOR_MIN = 20

export function say(text) {
  process.stdout.write(`${text}\n`)
}

export function checkMachine() {
  const major = Number(process.versions.node.split('.')[0])
  if (major < NODE_MAJOR_MIN) {
    fail(`Node ${NODE_MAJOR_MIN} or newer is needed; this is ${process.version}.`)
  }
  if (process.platform === 'win32') {
    fail('Building on Windows needs WSL: run the same command inside it.')
  }
}

/** Runs npm ci unless the installed packages are those of the lock file. */
export function ensurePackages() {
  const problem = packagesProblem()
  if (problem !== null) {
    say(`Installing packages with npm ci (${problem}) ...`)
    const started = performance.now()
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
    say(`  done in ${seconds(started)}`)
  }
  if (spawnSync(BUN, ['--version'], { stdio: 'ignore' }).status !== 0) {
    // npm runs no install scripts; this one puts the runtime into place.
    run(process.execPath, [join(ROOT, 'node_modules/bun/install.js')])
  }
}

function packagesProblem() {
  const installed = join(ROOT, 'node_modules/.package-lock.json')
  if (!existsSync(installed)) return 'none are installed'
  const wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages
  const present = JSON.parse(readFileSync(installed, 'utf8')).packages
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue
    const found = present[path]
    if (found === undefined && entry.optional !== true) return `${path} is missing`
    if (found !== undefined && found.version !== entry.version) return `${path} is another version`
  }
  return null
}

/** Generates, bundles and compiles unless dist was made from exactly this source. */
export function ensureBuilt() {
  const outputs = ['dist/svc-server', 'dist/svc', 'dist/svc-client/svc.mjs']
  const present = outputs.every((path) => existsSync(join(ROOT, path)))
  const digest = inputsDigest()
  if (present && existsSync(MARK) && readFileSync(MARK, 'utf8') === digest) return
  say('Building the executables ...')
  const started = performance.now()
  run(BUN, ['build/generate.ts'])
  for (const step of ['bundle', 'compile', 'client-pack']) run(BUN, [`build/${step}.ts`])
  mkdirSync(dirname(MARK), { recursive: true })
  writeFileSync(MARK, inputsDigest())
  say(`  done in ${seconds(started)}`)
}

/** One digest of everything that an executable is built from. */
function inputsDigest() {
  const hash = createHash('sha256').update(process.platform + process.arch)
  const files = ['package.json', 'package-lock.json']
  for (const folder of ['src', 'migrations', 'build']) collect(folder, files)
  for (const file of files.sort()) {
    hash.update(`\0${file}\0`).update(readFileSync(join(ROOT, file)))
  }
  return hash.digest('hex')
}

function collect(folder, files) {
  if (!existsSync(join(ROOT, folder))) return
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) {
      // Only the scripts of this folder make the executables.
      if (folder !== 'build') collect(path, files)
    } else if (!entry.name.endsWith('.test.ts')) {
      files.push(path)
    }
  }
}

export function seconds(started) {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`
}

function run(command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  if (result.status !== 0) {
    fail(`${command} ${args.join(' ')} failed${result.error ? `: ${result.error.message}` : ''}`)
  }
}

/** Runs a program in the foreground, forwards signals and returns its exit status. */
export function foreground(command, args, environment = process.env) {
  const child = spawn(command, args, { cwd: ROOT, stdio: 'inherit', env: environment })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal))
  }
  // npm may be killed without a signal to its children.
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid !== parent) child.kill('SIGTERM')
  }, 1000)
  watch.unref()
  return new Promise((resolve) => {
    child.once('error', (error) => fail(error.message))
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

export function fail(text) {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}
