"""Pools of words that generated projects and requests draw from."""


def _pool(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = _pool(
    """
Amara Bjorn Chen Dalia Edwin Farah Goran Hanna Imre Jonas Katya Lucia Marek Nadia Oscar Priya
Quentin Rosa Stefan Tamar Umar Vera Wanda Xenia Yusuf Zelda Anton Bianca Carlos Dmitri Elsa
Felix Greta Hugo Ines Jasper Kofi Leila Milan Nora Omar Paula Rafael Selma Tariq Ursula Aisha
Boris Celia Diego Emeka Fiona Gideon Helga Ivan Jolanda Kenji Ludmila Mateo Nadir Olga Pablo
Quirin Renata Sanjay Tove Ulla Viktor Wioletta Yara Zoran Alma Bruno Chiara Darko Esra
"""
)
SURNAMES = _pool(
    """
Abbott Brandt Castillo Dufour Eriksen Fischer Gallo Hoffman Ivanova Jansen Kowalski Larsen
Moreau Novak Okafor Petrov Quinn Rossi Sato Thorne Ulrich Vargas Weber Yilmaz Almeida Becker
Conti Diallo Engel Ferrari Grahn Haddad Ibrahim Jovanovic Kaplan Lindqvist Mbeki Nakamura Osei
Pohl Ramos Schmidt Takeda Urban Vidal Wagner Zeman
"""
)
CITIES = _pool(
    """
Lisbon Tallinn Bergen Porto Krakow Leuven Malmo Turin Graz Utrecht Seville Dresden Lyon Bristol
Galway Ghent Osaka Quito Cusco Tromso Bilbao Split Varna Kyoto Aarhus Basel Cadiz Delft Essen
Faro Girona Haarlem Innsbruck Jena Kaunas Linz Modena Nantes Odense Parma Rennes Siena Trento
Uppsala Verona Zadar Bodo Cluj
"""
)
PRODUCTS = _pool(
    """
lantern kettle saddle mirror blanket compass hammock teapot ladder basket candle pillow trowel
bucket anvil whistle violin stapler backpack umbrella tripod thermos goggles hairbrush inkwell
jigsaw kayak locket mallet napkin oven padlock quilt rake scarf tongs urn vase wrench xylophone
yoyo zipper apron beaker crate dresser easel flask gavel harness
"""
)
ANIMALS = _pool(
    """
otter badger heron lynx walrus magpie gecko ferret bison puffin marmot falcon tapir dingo osprey
weasel jackal toucan lemur stoat alpaca beaver cheetah dormouse egret finch gazelle hamster ibex
jaguar kiwi llama meerkat newt ocelot penguin quail raccoon salmon tortoise vulture wombat yak
zebra antelope buffalo condor dolphin emu
"""
)
THINGS = _pool(
    """
invoice parcel ticket voucher shipment recipe booking lesson player sensor device message
payment member article album track route tariff region report survey garden meter order contract
receipt permit gadget vehicle student course lecture exam clinic patient visit flight hotel
menu tavern coupon badge widget chapter poem author editor league tournament season stadium
farm crop
"""
)
TOPICS = _pool(
    """
billing search export reports upload metrics backup archive catalog gallery museum inventory
roster ledger planner tracker courier harbor orchard beacon almanac atlas bakery cellar depot
estate forge grotto hangar island jetty kiosk lagoon market nursery outpost pantry quarry ranch
station terrace upland vineyard warehouse yard annex boutique chalet dockyard
"""
)
SERVICES = _pool(
    """
gateway mailer indexer scheduler notifier renderer collector importer resolver balancer crawler
broker dispatcher encoder fetcher grader hasher inspector janitor keysmith linker monitor
narrator optimizer recorder sampler tagger uploader validator watcher exporter
"""
)
HOSTS = _pool("""
alder birch cedar dogwood ebony fir gorse hazel ironwood juniper larch maple aspen baobab
cypress dogrose elm fig ginkgo holly ivy jacaranda katsura linden magnolia nutmeg oak pine quince
rowan spruce teak willow yew
""")
KEYS = _pool(
    """
max_retries page_limit cache_ttl queue_depth batch_rows idle_minutes poll_interval upload_limit
worker_count grace_period burst_size window_days history_depth chunk_kb retry_delay row_height
column_limit sample_rate frame_count buffer_pages lease_seconds thread_cap upload_parts
warm_copies drain_wait probe_every slot_total token_budget rank_depth shard_count
"""
)
FLAGS = _pool(
    """
dark_mode verbose_log beta_search auto_sync strict_mode use_cache send_mail show_tips
keep_drafts trace_calls allow_guest fast_start lazy_load compress_logs mask_names follow_links
group_rows sort_keys use_proxy pin_tabs echo_input skip_empty warn_late wrap_lines hide_zero
join_groups
"""
)
COLOURS = _pool(
    """
crimson teal orange purple olive maroon indigo salmon tomato orchid peru sienna turquoise violet
gold khaki coral plum aqua azure beige bisque chocolate cyan fuchsia ivory lavender lime linen
magenta navy pink seashell silver snow tan thistle wheat
"""
)
VERBS = _pool("""
pack trim merge scale round clip pad fold wrap stack shuffle group blend carve drill frame glaze
hoist knead label mold paint press rinse sand sift slice stamp stir sweep tally tie twist weave
weigh
""")
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
