/** The links between the pages of a list that the server gives in parts. */
import { hrefOf } from '../state.ts'

export function PageLinks({
  page,
  at,
  after,
  next,
}: {
  page: string
  /** Parameters that every page of the list has. */
  at: Readonly<Record<string, string | null>>
  after: string | null
  next: string | null
}) {
  if (after === null && next === null) return null
  return (
    <p class="buttons">
      {after !== null && <a href={hrefOf(page, at)}>First page</a>}
      {next !== null && <a href={hrefOf(page, { ...at, after: next })}>Next page</a>}
    </p>
  )
}
