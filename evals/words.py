"""Pools of words that generated projects and requests draw from."""


def _pool(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = _pool(
    """Amara Bjorn Chen Dalia Edwin Farah Goran Hanna Imre Jonas Katya Lucia Marek Nadia Oscar
Priya Quentin Rosa Stefan Tamar Umar Vera Wanda Xenia Yusuf Zelda Anton Bianca Carlos Dmitri Elsa
Felix Greta Hugo Ines Jasper Kofi Leila Milan Nora Omar Paula Rafael Selma Tariq Ursula"""
)
SURNAMES = _pool(
    """Abbott Brandt Castillo Dufour Eriksen Fischer Gallo Hoffman Ivanova Jansen Kowalski
Larsen Moreau Novak Okafor Petrov Quinn Rossi Sato Thorne Ulrich Vargas Weber Yilmaz"""
)
CITIES = _pool(
    """Lisbon Tallinn Bergen Porto Krakow Leuven Malmo Turin Graz Utrecht Seville Dresden Lyon
Bristol Galway Ghent Osaka Quito Cusco Tromso Bilbao Split Varna Kyoto"""
)
PRODUCTS = _pool(
    """lantern kettle saddle mirror blanket compass hammock teapot ladder basket candle
pillow trowel bucket anvil whistle violin stapler backpack umbrella tripod thermos"""
)
ANIMALS = _pool(
    """otter badger heron lynx walrus magpie gecko ferret bison puffin marmot falcon tapir
dingo osprey weasel jackal toucan lemur stoat"""
)
THINGS = _pool(
    """invoice parcel ticket voucher shipment recipe booking lesson player sensor device
message payment member article album track route tariff region report survey garden meter"""
)
TOPICS = _pool(
    """billing search export reports upload metrics backup archive catalog gallery calendar
inventory roster ledger planner tracker courier harbor orchard beacon"""
)
SERVICES = _pool(
    """gateway mailer indexer scheduler notifier renderer collector importer resolver
balancer crawler broker"""
)
HOSTS = _pool("""alder birch cedar dogwood ebony fir gorse hazel ironwood juniper larch maple""")
KEYS = _pool(
    """max_retries page_limit cache_ttl queue_depth batch_rows idle_minutes poll_interval
upload_limit worker_count grace_period burst_size window_days history_depth chunk_kb"""
)
FLAGS = _pool(
    """dark_mode verbose_log beta_search auto_sync strict_mode use_cache send_mail show_tips
keep_drafts trace_calls allow_guest fast_start"""
)
TEXTS = _pool("""theme region locale currency channel tier backend driver layout profile""")
COLOURS = _pool(
    """crimson teal orange purple olive maroon indigo salmon tomato orchid peru sienna
turquoise violet gold khaki coral plum"""
)
VERBS = _pool("""pack trim merge scale round clip pad fold wrap stack shuffle group""")
ERRORS = (
    "lost contact with the relay",
    "certificate expired",
    "quota exceeded for bucket",
    "checksum mismatch in block",
    "too many open files",
    "permission refused by the proxy",
    "unexpected end of stream",
    "lease was not renewed",
    "schema revision unknown",
    "out of inodes",
)
CHORES = (
    "rotate the signing keys",
    "order new badges",
    "ask legal about the form",
    "archive last year's photos",
    "water the plants on floor two",
    "update the on-call list",
    "book the room for the retro",
    "call the printer vendor",
    "check the fire door",
    "renew the domain",
)
SENTENCES = (
    "Orders placed before noon leave the same day.",
    "The north entrance is closed on Mondays.",
    "Every reading is averaged over ten minutes.",
    "Members may bring one guest.",
    "Samples are kept for ninety days.",
    "The workshop needs at least four people.",
    "Deliveries use the ramp behind the hall.",
    "Drafts are visible to editors only.",
)
