/** The search of the page. It loads its index, a script of the site, when it is first used. */
import MiniSearch from 'minisearch'
import { type Found, SEARCH_OPTIONS } from '../search-index.ts'
import { element } from './elements.ts'
import { loadScript } from './scripts.ts'

declare global {
  /** The index as JSON, which search-index.js sets. */
  var svcSearchIndex: string | undefined
}

const SHOWN_MAX = 20

let index: Promise<MiniSearch> | null = null

function loadIndex(): Promise<MiniSearch> {
  index ??= loadScript('search-index.js').then(
    () => MiniSearch.loadJSON(globalThis.svcSearchIndex ?? '', SEARCH_OPTIONS),
    (error) => {
      index = null
      throw error
    },
  )
  return index
}

export function addSearch(tools: HTMLElement): void {
  const label = 'Search the documentation'
  const field = element('input', {
    type: 'search',
    'aria-label': label,
    'aria-keyshortcuts': '/',
    placeholder: 'Search  /',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  const status = element('p', { role: 'status', class: 'count' })
  const list = element('ul')
  const panel = element('div', { class: 'found' }, status, list)
  panel.hidden = true
  const box = element('div', { class: 'search', role: 'search' }, field, panel)

  const show = async (): Promise<void> => {
    const wanted = field.value.trim()
    panel.hidden = wanted === ''
    if (wanted === '') return
    try {
      const found = (await loadIndex()).search(wanted) as unknown as Found[]
      // A later key has begun another search.
      if (field.value.trim() !== wanted) return
      list.replaceChildren(...found.slice(0, SHOWN_MAX).map(itemOf))
      status.textContent = countText(found.length)
    } catch {
      list.replaceChildren()
      status.textContent = 'The search is not available. Reload the page.'
    }
  }
  field.addEventListener('focus', () => void loadIndex().catch(() => {}))
  field.addEventListener('input', () => void show())
  list.addEventListener('click', () => close())
  const close = (): void => {
    panel.hidden = true
    field.value = ''
  }
  box.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      close()
      field.focus()
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      moveFocus(field, list, event.key === 'ArrowDown' ? 1 : -1)
    } else if (event.key === 'Enter' && event.target === field) list.querySelector('a')?.click()
  })
  document.addEventListener('click', (event) => {
    if (!box.contains(event.target as Node)) panel.hidden = true
  })
  document.addEventListener('keydown', (event) => {
    const isWriting = event.target instanceof HTMLInputElement
    if (event.key !== '/' || isWriting || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    field.focus()
  })
  tools.append(box)
}

function itemOf({ path, title, heading, excerpt }: Found): HTMLElement {
  const up = document.documentElement.dataset.up ?? ''
  const name = heading === title ? title : `${heading} · ${title}`
  return element(
    'li',
    {},
    element('a', { href: up + path }, element('strong', {}, name), element('span', {}, excerpt)),
  )
}

function countText(count: number): string {
  if (count === 0) return 'Nothing was found.'
  if (count === 1) return '1 place'
  return count > SHOWN_MAX ? `The best ${SHOWN_MAX} of ${count} places` : `${count} places`
}

/** Moves the focus over the field and the places that were found. */
function moveFocus(field: HTMLElement, list: HTMLElement, step: number): void {
  const stops = [field, ...list.querySelectorAll<HTMLElement>('a')]
  const at = stops.indexOf(document.activeElement as HTMLElement)
  stops[at + step]?.focus()
}
