/** The colours of the page: those of the system, unless the reader chose others. */

export type Theme = 'light' | 'dark'

const KEY = 'svc-docs-theme'

/** Returns what the reader chose; null for the colours of the system. */
export function storedTheme(): Theme | null {
  try {
    const stored = localStorage.getItem(KEY)
    return stored === 'light' || stored === 'dark' ? stored : null
  } catch {
    // A page of a file may have no storage.
    return null
  }
}

export function storeTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // The choice lasts as long as the page.
  }
}

export function applyTheme(theme: Theme | null): void {
  if (theme !== null) document.documentElement.dataset.theme = theme
}

/** Returns the colours that the page has. */
export function shownTheme(): Theme {
  const chosen = document.documentElement.dataset.theme
  if (chosen === 'light' || chosen === 'dark') return chosen
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}
