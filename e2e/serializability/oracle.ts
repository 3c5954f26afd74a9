/**
 * The exact oracle: the committed Mutations, one after the other in the order of their sequences,
 * give the same answers on the model, and every Query equals the model at its snapshot.
 */
import { describe, type History, isWrite, type Transaction } from './history.ts'
import { Model } from './model.ts'

/** A Mutation that wrote nothing: it read the model at a sequence from `first` to `last`. */
interface Floating {
  readonly transaction: Transaction
  readonly first: number
  readonly last: number
}

/** Returns all problems, one sentence each. */
export function compareWithModel(history: History): string[] {
  const committed = history.filter(({ outcome }) => outcome === 'committed')
  const commits = committed
    .filter(({ commitSequence }) => commitSequence !== null)
    .sort((a, b) => a.commitSequence! - b.commitSequence!)
  const problems = shapeProblems(committed, commits)
  const queries = committed
    .filter(({ snapshotSequence }) => snapshotSequence !== null)
    .sort((a, b) => a.snapshotSequence! - b.snapshotSequence!)
  const floating = floatingOf(committed).sort((a, b) => a.first - b.first)
  const model = new Model()
  const unplaced = new Set<Floating>()
  let nextQuery = 0
  let nextFloating = 0
  /** Compares the reads of the model's state between `sequence` and `until`. */
  const compareReads = (sequence: number, until: number): void => {
    for (; (queries[nextQuery]?.snapshotSequence ?? until) < until; nextQuery++) {
      compare(queries[nextQuery]!, model, problems)
    }
    for (; (floating[nextFloating]?.first ?? until) < until; nextFloating++) {
      unplaced.add(floating[nextFloating]!)
    }
    for (const each of unplaced) {
      if (each.last < sequence) {
        problems.push(
          `no state during its request gives these answers: ${describe(each.transaction)}`,
        )
        unplaced.delete(each)
      } else if (isSame(each.transaction, model)) unplaced.delete(each)
    }
  }
  for (const [i, commit] of commits.entries()) {
    compareReads(commits[i - 1]?.commitSequence ?? 0, commit.commitSequence!)
    compare(commit, model, problems)
  }
  compareReads(commits.at(-1)?.commitSequence ?? 0, Number.POSITIVE_INFINITY)
  for (const { transaction } of unplaced) {
    problems.push(`no state during its request gives these answers: ${describe(transaction)}`)
  }
  return problems
}

/** Checks that a sequence in a reply is less than those of Mutations that were sent later. */
export function compareWithTime(history: History): string[] {
  const problems: string[] = []
  const answered = history.filter(({ outcome }) => outcome === 'committed')
  const newestBefore = newestAnswerBefore(answered)
  for (const transaction of answered) {
    const { commitSequence, snapshotSequence } = transaction
    const newest = newestBefore(transaction.invoked)
    const isBehind = commitSequence !== null && commitSequence <= newest
    const isOld = snapshotSequence !== null && snapshotSequence < newest
    if (!isBehind && !isOld) continue
    problems.push(`sequence ${newest} was known before the request: ${describe(transaction)}`)
  }
  return problems
}

function shapeProblems(committed: History, commits: History): string[] {
  const problems: string[] = []
  for (const [i, commit] of commits.entries()) {
    if (commits[i - 1]?.commitSequence !== commit.commitSequence) continue
    problems.push(`two Mutations have one sequence: ${describe(commit)}`)
  }
  for (const transaction of committed) {
    const { kind, commitSequence, snapshotSequence, operations } = transaction
    const hasSequence = kind === 'query' ? snapshotSequence !== null : commitSequence !== null
    const expected = kind === 'query' ? operations.length > 0 : operations.some(isWrite)
    if (hasSequence === expected) continue
    problems.push(`${expected ? 'no' : 'a'} sequence: ${describe(transaction)}`)
  }
  return problems
}

function floatingOf(committed: History): Floating[] {
  const newestBefore = newestAnswerBefore(committed)
  const newestSent = newestSentBefore(committed)
  return committed
    .filter(({ kind, commitSequence }) => kind === 'mutation' && commitSequence === null)
    .map((transaction) => ({
      transaction,
      first: newestBefore(transaction.invoked),
      last: newestSent(transaction.completed),
    }))
}

/** Returns the greatest sequence in the replies before a time; 0 for none. */
function newestAnswerBefore(committed: History): (moment: number) => number {
  return greatestBefore(
    committed.map(({ completed, commitSequence, snapshotSequence }) => ({
      at: completed,
      sequence: commitSequence ?? snapshotSequence ?? 0,
    })),
  )
}

/** Returns the greatest sequence of the Mutations that were sent before a time; 0 for none. */
function newestSentBefore(committed: History): (moment: number) => number {
  return greatestBefore(
    committed.map(({ invoked, commitSequence }) => ({
      at: invoked,
      sequence: commitSequence ?? 0,
    })),
  )
}

function greatestBefore(
  entries: { readonly at: number; readonly sequence: number }[],
): (moment: number) => number {
  const sorted = entries.sort((a, b) => a.at - b.at)
  const greatest = new Float64Array(sorted.length)
  for (const [i, { sequence }] of sorted.entries()) {
    greatest[i] = Math.max(greatest[i - 1] ?? 0, sequence)
  }
  return (moment) => {
    let low = 0
    let high = sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (sorted[middle]!.at < moment) low = middle + 1
      else high = middle
    }
    return greatest[low - 1] ?? 0
  }
}

function compare(transaction: Transaction, model: Model, problems: string[]): void {
  const expected = JSON.stringify(model.perform(transaction.operations))
  if (expected === JSON.stringify(transaction.answers)) return
  problems.push(`the model returns ${expected}: ${describe(transaction)}`)
}

function isSame({ operations, answers }: Transaction, model: Model): boolean {
  return JSON.stringify(model.perform(operations)) === JSON.stringify(answers)
}
