/** The baseline of durable Mutations in SQLite: single-row commits on the same disk. */
import { Database } from 'bun:sqlite'
import { type LoadResult, toLoadResult, WARM_UP_SHARE } from '../load.ts'

/** Commits one row at a time; each is in the write-ahead log on the disk before the next begins. */
export class SingleCommits {
  readonly #database: Database
  readonly #insert

  constructor(path: string) {
    this.#database = new Database(path, { create: true })
    for (const pragma of ['journal_mode = wal', 'synchronous = full', 'fullfsync = on']) {
      this.#database.run(`pragma ${pragma}`)
    }
    this.#database.run('create table rows (id integer primary key, body text not null) strict')
    this.#insert = this.#database.prepare<null, [string]>('insert into rows (body) values (?)')
  }

  run(body: string, seconds: number): LoadResult {
    const latencies: number[] = []
    const startAt = performance.now()
    const countFrom = startAt + seconds * 1000 * WARM_UP_SHARE
    const stopAt = startAt + seconds * 1000
    for (let before = startAt; before < stopAt; ) {
      this.#insert.run(body)
      const after = performance.now()
      if (before >= countFrom) latencies.push(after - before)
      before = after
    }
    return toLoadResult(latencies, seconds * (1 - WARM_UP_SHARE))
  }

  close(): void {
    this.#database.close()
  }
}
